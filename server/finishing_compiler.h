// Kernels whose images a vendor's compiler finishes (drivers::Driver::Finish), in separate
// processes, so that its crashes, hangs and memory use affect nothing else.
#ifndef KILN_SERVER_FINISHING_COMPILER_H_
#define KILN_SERVER_FINISHING_COMPILER_H_

#include <functional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/workers/kernel_compiler.h"

namespace kiln {

// Thread-safe.
class FinishingCompiler : public workers::KernelCompiler {
 public:
  struct Options {
    // Makes images.
    workers::KernelCompiler* assembler = nullptr;
    // Takes jobs with an image (KernelJob::unfinished). Its processes open vendors' libraries.
    workers::KernelCompiler* finisher = nullptr;
    // Called once for each device that turns out to load only unfinished images, with the reason.
    std::function<void(const drivers::Finisher&, const absl::Status& why)> on_unable;
  };

  // Requires: both compilers are there. The objects in the options must outlive this object.
  explicit FinishingCompiler(Options options);

  // Returns the assembler's image, finished if its target has a finisher that can do it. Errors:
  // those of both compilers.
  absl::StatusOr<drivers::KernelImage> Compile(const workers::KernelJob& job) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsUnable(const drivers::Finisher& finisher) const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetUnable(const drivers::Finisher& finisher, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::set<std::string> unable_ ABSL_GUARDED_BY(mutex_);  // Finisher::device
};

}  // namespace kiln

#endif  // KILN_SERVER_FINISHING_COMPILER_H_
