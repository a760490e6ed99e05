// irtool's commands for the settings of one kernel (docs/design/search.md).
#ifndef KILN_COMPILER_IRTOOL_SETTINGS_H_
#define KILN_COMPILER_IRTOOL_SETTINGS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kiln {

// Prints the knobs of the kernel, which is in text form, with their legal values and the
// heuristic's choice, and then the heuristic's setting. `device`: "vector_bytes=64
// compute_units=16", fields of drivers::Limits and Capabilities; the word "threads" says that lanes
// are threads.
absl::StatusOr<std::string> PrintSpace(std::string_view kernel, std::string_view device);

// Prints the schedule of a setting in text form, and as comments what of the setting is ignored and
// the model's cost.
absl::StatusOr<std::string> PrintSchedule(std::string_view kernel, std::string_view device,
                                          std::string_view setting);

}  // namespace kiln

#endif  // KILN_COMPILER_IRTOOL_SETTINGS_H_
