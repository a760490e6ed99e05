// Numbers about a scheduled kernel on which its time depends, for a model that compares schedules
// of one kernel (model/cost_model.h).
#ifndef KILN_COMPILER_SEARCH_MODEL_FEATURES_H_
#define KILN_COMPILER_SEARCH_MODEL_FEATURES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Grows if a feature's meaning or place changes: stored features of other versions are not compared
// with new ones.
inline constexpr uint64_t kFeaturesVersion = 1;

// Logarithms of counts: instructions by kind, memory traffic by level, registers, tasks.
using Features = std::vector<double>;

// The names of the features, in their order.
absl::Span<const std::string_view> FeatureNames();

// Counts what the schedule's loops do, as FeatureNames says. Takes about as long as Apply, whose
// error it returns.
absl::StatusOr<Features> FeaturesOf(const kernel::Kernel& kernel,
                                    const schedule::Schedule& schedule,
                                    const drivers::Target& target);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_MODEL_FEATURES_H_
