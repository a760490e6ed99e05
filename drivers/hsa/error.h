// HSA's errors as statuses.
#ifndef KILN_DRIVERS_HSA_ERROR_H_
#define KILN_DRIVERS_HSA_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/hsa/library.h"

namespace kiln::drivers::hsa {

// "0x1008: what the runtime says of it".
std::string ErrorName(const Library& hsa, hsa_status_t code);

// RESOURCE_EXHAUSTED for memory and other things that run out, else INTERNAL; the message begins
// with `what`.
absl::Status ToStatus(const Library& hsa, absl::string_view what, hsa_status_t code);

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_ERROR_H_
