// Everything that searches have measured, on disk, for a model of kernels' times: `samples.sqlite`,
// a sealed table (cache/sealed_table.h) beside the settings. docs/formats/samples.md specifies it.
// Losing it costs only the order in which candidates are measured.
#ifndef KILN_SERVER_TUNER_COST_SAMPLES_H_
#define KILN_SERVER_TUNER_COST_SAMPLES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compiler/search/model/cost_model.h"
#include "compiler/search/model/features.h"
#include "server/cache/sealed_table.h"

namespace kiln::tuner {

// The measured schedules of one kernel on one kind of hardware.
struct KernelSamples {
  std::string hardware;
  search::Features heuristic;
  // Features, and the logarithm of the time over the heuristic's.
  std::vector<std::pair<search::Features, double>> schedules;

  bool operator==(const KernelSamples&) const = default;
};

// Thread-safe. Several daemons may share a folder.
class CostSamples {
 public:
  struct Options {
    std::string folder;
    // Kernels; the least recently measured are dropped first.
    int64_t kernels_max = 1000;
    int64_t bytes_max = int64_t{32} << 20;
    std::function<absl::Time()> now;
  };

  // Of one kernel; later ones are not stored.
  static constexpr size_t kSchedulesMax = 200;
  // A model is fitted to at most as many schedules, those of the kernels measured last.
  static constexpr size_t kFittedMax = 5000;
  // A model that knows fewer kernels than this says nothing about others.
  static constexpr int kKernelsMin = 8;

  explicit CostSamples(Options options);

  // Replaces the samples of this kernel (canonical text) on this hardware. Errors: those of
  // SealedTable::Put.
  absl::Status Add(const std::string& kernel, const KernelSamples& samples)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the model fitted to what was measured on this hardware; null if that is too little.
  // Fits, which takes about a second, once for each change.
  std::shared_ptr<const search::CostModel> ModelOf(const std::string& hardware)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  cache::SealedTable table_;
  absl::Mutex mutex_;
  // By hardware. Missing: not fitted since the last change.
  std::map<std::string, std::shared_ptr<const search::CostModel>> models_ ABSL_GUARDED_BY(mutex_);
};

// docs/formats/samples.md. Requires: features have the size of FeatureNames.
std::string EncodeSamples(const KernelSamples& samples);
// Nothing if the bytes are not samples of this version's features.
std::optional<KernelSamples> DecodeSamples(std::string_view bytes);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_COST_SAMPLES_H_
