// Messages as JSON, as `kiln --json` prints them.
#ifndef KILN_SERVER_WEB_JSON_H_
#define KILN_SERVER_WEB_JSON_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln::web {

// Every field is there, also if it is zero, under its name in the .proto file; 64-bit integers are
// strings.
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message);

// {"reason": "UNKNOWN_PROGRAM", "message": "…"}. Requires: `status` is not OK.
std::string ErrorJson(const absl::Status& status);

}  // namespace kiln::web

#endif  // KILN_SERVER_WEB_JSON_H_
