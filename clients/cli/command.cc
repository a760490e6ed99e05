#include "clients/cli/command.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/login.h"
#include "clients/cpp/status.h"

namespace kiln::cli {

namespace {

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& answer, bool on_many_lines) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = on_many_lines;
  // Scripts should find every field, even if it is zero, under its name in the .proto file.
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  auto status = google::protobuf::util::MessageToJsonString(answer, &text, options);
  if (!status.ok())
    return absl::InternalError(absl::StrCat("cannot print as JSON: ", status.ToString()));
  return text;
}

}  // namespace

absl::Status Invocation::Check(const grpc::Status& status) const {
  const absl::Status checked = client::FromGrpc(status, address);
  // Commands do not cancel their calls, so a daemon stopped before it could answer.
  if (absl::IsCancelled(checked) && client::IsLostConnection(checked)) {
    return absl::UnavailableError(absl::StrCat(
        "the daemon at ", address, " stopped during the call; try again when a daemon runs there"));
  }
  return client::WithElsewhere(checked, elsewhere);
}

absl::Status Invocation::PrintJson(const google::protobuf::Message& answer) const {
  const auto text = ToJson(answer, /*on_many_lines=*/true);
  if (text.ok()) out << *text;
  return text.status();
}

absl::Status Invocation::PrintJsonLine(const google::protobuf::Message& answer) const {
  const auto text = ToJson(answer, /*on_many_lines=*/false);
  if (text.ok()) out << *text << std::endl;
  return text.status();
}

absl::Status Invocation::ExpectNoArguments() const {
  if (arguments.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("unexpected: ", absl::StrJoin(arguments, " ")));
}

void SetDeadline(grpc::ClientContext& context, int seconds) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
}

}  // namespace kiln::cli
