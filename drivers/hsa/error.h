// Translation of HSA's errors into statuses.
#ifndef KILN_DRIVERS_HSA_ERROR_H_
#define KILN_DRIVERS_HSA_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/hsa/library.h"

namespace kiln::drivers::hsa {

// "0x1008: the runtime's description".
std::string ErrorName(const Library& hsa, hsa_status_t code);

// RESOURCE_EXHAUSTED for lack of memory or of other resources, else INTERNAL; the message begins
// with `what`.
absl::Status ToStatus(const Library& hsa, absl::string_view what, hsa_status_t code);

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_ERROR_H_
