// The rooflines of many kernels. A list of all kernels asks for thousands of them, again and again,
// and each takes a parse of the kernel; so they are remembered.
#ifndef KILN_SERVER_TUNER_ROOFLINES_H_
#define KILN_SERVER_TUNER_ROOFLINES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/tuner/device_rates.h"
#include "server/tuner/setting_store.h"

namespace kiln::tuner {

// Thread-safe.
class Rooflines {
 public:
  static constexpr size_t kRememberedMax = 1 << 15;

  // `store`, which has the rates, outlives this.
  explicit Rooflines(SettingStore& store) : store_(store) {}

  struct Kernel {
    absl::string_view digest;    // identifies the text
    const std::string* ir;       // canonical; borrowed
    absl::string_view hardware;  // drivers::Target::HardwareKey
  };
  // Returns one for each kernel, with the stored rates; Roofline() if its hardware was not
  // measured.
  std::vector<Roofline> Of(absl::Span<const Kernel> kernels) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t remembered() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct OfHardware {
    std::optional<DeviceRates> rates;  // those that the rooflines follow from
    absl::flat_hash_map<std::string, Roofline> by_digest;
  };
  using Hardware = std::map<std::string, OfHardware, std::less<>>;

  // Reads the stored rates of these kernels' hardware, and forgets rooflines of other rates.
  void ReadRates(absl::Span<const Kernel> kernels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Roofline Find(const Kernel& kernel) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SettingStore& store_;
  mutable absl::Mutex mutex_;
  Hardware hardware_ ABSL_GUARDED_BY(mutex_);
  size_t remembered_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_ROOFLINES_H_
