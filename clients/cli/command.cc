#include "clients/cli/command.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/json.h"
#include "clients/cli/table.h"
#include "clients/cpp/login.h"
#include "clients/cpp/status.h"

namespace kiln::cli {

absl::Status Invocation::Check(const grpc::Status& status) const {
  const absl::Status checked = client::FromGrpc(status, address);
  // Commands do not cancel their calls, so a daemon stopped before it could answer.
  if (absl::IsCancelled(checked) && client::IsLostConnection(checked)) {
    return absl::UnavailableError(absl::StrCat(
        "the daemon at ", address, " stopped during the call; try again when a daemon runs there"));
  }
  return client::WithElsewhere(checked, login);
}

absl::Status Invocation::PrintJson(const google::protobuf::Message& answer) const {
  out << ToJson(answer, /*on_many_lines=*/true);
  return absl::OkStatus();
}

absl::Status Invocation::PrintJsonLine(const google::protobuf::Message& answer) const {
  out << ToJson(answer, /*on_many_lines=*/false) << std::endl;
  return absl::OkStatus();
}

absl::Status Invocation::PrintTable(Table& table, std::ostream& to) const {
  if (!sort.empty())
    if (absl::Status status = table.SortBy(sort); !status.ok()) return status;
  const size_t more = rows_max ? table.KeepFirst(*rows_max) : 0;
  table.Print(to);
  if (more > 0) to << "and " << more << " more\n";
  return absl::OkStatus();
}

absl::Status Invocation::ExpectNoArguments() const {
  if (arguments.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("unexpected: ", absl::StrJoin(arguments, " ")));
}

void SetDeadline(grpc::ClientContext& context, int seconds) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
}

}  // namespace kiln::cli
