// On which kernels users spend how much of the devices' time.
#ifndef KILN_SERVER_TUNER_KERNEL_USE_H_
#define KILN_SERVER_TUNER_KERNEL_USE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/runtime/program/program.h"
#include "server/tuner/kernels_of.h"

namespace kiln::tuner {

// Outlives the programs that are looked at, of which it keeps none. Not thread-safe.
class KernelUse {
 public:
  // Of those with the least time the rest is forgotten.
  static constexpr size_t kKernelsMax = 1000;
  static constexpr int64_t kTextBytesMax = 16 << 20;

  struct Used {
    KernelToTune kernel;
    std::string program;       // the short digest of a program that has it
    double seconds = 0;        // of all runs
    bool is_searched = false;  // SetSearched
  };

  // Adds the time that users' programs have taken since the last call. A program that has gone in
  // between counts as it was then.
  void Look(absl::Span<const std::shared_ptr<runtime::Program>> programs);
  // Adds time of one kernel.
  void Add(const KernelToTune& kernel, const std::string& program, double seconds);

  // Returns the kernels of this device that were not searched, the most used first. Valid until the
  // next call of another method.
  std::vector<const Used*> Unsearched(const runtime::ManagedDevice& device) const;
  // The kernel is not returned any more, as long as it is known.
  void SetSearched(const KernelToTune& kernel);

  size_t size() const { return kernels_.size(); }
  int64_t text_bytes() const { return text_bytes_; }

 private:
  struct Seen {
    std::weak_ptr<runtime::Program> program;
    double device_seconds = 0;
  };
  void DropLeastUsed();

  std::map<std::string, Used> kernels_;  // by TuningKey
  int64_t text_bytes_ = 0;               // of the keys and the kernels
  std::map<const runtime::Program*, Seen> seen_;
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_KERNEL_USE_H_
