#include "drivers/hsa/error.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kiln::drivers::hsa {

std::string ErrorName(const Library& hsa, hsa_status_t code) {
  const std::string number = absl::StrFormat("0x%x", static_cast<int>(code));
  const char* text = nullptr;
  if (hsa.status_string(code, &text) != HSA_STATUS_SUCCESS || text == nullptr)
    return absl::StrCat("the error ", number);
  return absl::StrCat(number, ": ", text);
}

absl::Status ToStatus(const Library& hsa, absl::string_view what, hsa_status_t code) {
  if (code == HSA_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", ErrorName(hsa, code));
  if (code == HSA_STATUS_ERROR_OUT_OF_RESOURCES || code == HSA_STATUS_ERROR_INVALID_ALLOCATION)
    return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace kiln::drivers::hsa
