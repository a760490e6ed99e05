#include "server/web/json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "proto/text/printable.h"
#include "server/errors/errors.h"
#include "server/web/pages.pb.h"

namespace kiln::web {

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok())
    return absl::InternalError(absl::StrCat("cannot print as JSON: ", status.ToString()));
  return text;
}

std::string ErrorJson(const absl::Status& status) {
  KILN_CHECK(!status.ok());
  Refusal refusal;
  refusal.set_reason(errors::Reason(status));
  // A message may quote bytes that are no text.
  refusal.set_message(Printable(std::string(status.message())));
  return ToJson(refusal).value_or("{}");
}

}  // namespace kiln::web
