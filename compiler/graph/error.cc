#include "compiler/graph/error.h"

#include "absl/strings/cord.h"
#include "compiler/ir/str_cat.h"

namespace kiln::graph {

absl::Status MakeError(std::string_view reason, const std::vector<Detail>& details,
                       std::string_view message, absl::StatusCode code) {
  absl::Status status(code, View(message));
  status.SetPayload("kiln/reason", absl::Cord(View(reason)));
  for (const auto& [key, value] : details) {
    status.SetPayload(StrCat("kiln/", key), absl::Cord(value));
  }
  return status;
}

std::string ErrorDetail(const absl::Status& status, std::string_view key) {
  auto payload = status.GetPayload(StrCat("kiln/", key));
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace kiln::graph
