// Translation of Level Zero's results.
#ifndef KILN_DRIVERS_LEVEL_ZERO_ERROR_H_
#define KILN_DRIVERS_LEVEL_ZERO_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/level_zero/api_types.h"

namespace kiln::drivers::level_zero {

// "ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)".
std::string ErrorName(ze_result_t code);

// OK for ZE_RESULT_SUCCESS, RESOURCE_EXHAUSTED for lack of memory, else INTERNAL. `what` describes
// the failed action: "cannot launch the kernel softmax".
absl::Status ToStatus(absl::string_view what, ze_result_t code);

// Whether the device's context is permanently broken after this error.
bool MeansLost(ze_result_t code);

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_ERROR_H_
