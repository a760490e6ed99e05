// kiln user add NAME [--role ROLE] | list | revoke NAME
#include <grpcpp/grpcpp.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/admin.grpc.pb.h"

namespace kiln::cli {
namespace {

std::string Day(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(time.seconds()), absl::UTCTimeZone());
}

absl::Status Add(Invocation& invocation, v1::AdminService::Stub& stub) {
  v1::AddUserRequest request;
  for (size_t i = 1; i < invocation.arguments.size(); ++i) {
    const std::string& argument = invocation.arguments[i];
    if (absl::StartsWith(argument, "--role=")) {
      request.set_role(argument.substr(7));
    } else if (argument == "--role" && i + 1 < invocation.arguments.size()) {
      request.set_role(invocation.arguments[++i]);
    } else if (request.name().empty() && !absl::StartsWith(argument, "-")) {
      request.set_name(argument);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unexpected: ", argument));
    }
  }
  if (request.name().empty()) return absl::InvalidArgumentError("`user add` needs a name");
  grpc::ClientContext context;
  SetDeadline(context);
  v1::AddUserResponse answer;
  if (absl::Status status = invocation.Check(stub.AddUser(&context, request, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << answer.token() << '\n';
  // Apart, so that $(kiln user add ann) is the token.
  invocation.error << "This is " << answer.user().name()
                   << "'s token, shown this once: KILN_TOKEN, or `token` in "
                      "~/.config/kiln/config.toml\n";
  return absl::OkStatus();
}

absl::Status List(Invocation& invocation, v1::AdminService::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListUsersResponse answer;
  if (absl::Status status = invocation.Check(stub.ListUsers(&context, {}, &answer)); !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  Table table({"user", "role", "token", "added", "revoked", ">memory", ">device time"});
  for (const v1::User& user : answer.users()) {
    table.Add({user.name(), user.role().empty() ? "-" : user.role(),
               user.token_id().empty() ? "-" : user.token_id(),
               user.has_created() ? Day(user.created()) : "-",
               user.has_revoked() ? Day(user.revoked()) : "-", Bytes(user.memory_bytes()),
               Duration(user.device_seconds())});
  }
  if (table.empty()) {
    invocation.out << "there are no users; `kiln user add NAME` adds one\n";
    return absl::OkStatus();
  }
  table.Print(invocation.out);
  return absl::OkStatus();
}

absl::Status Revoke(Invocation& invocation, v1::AdminService::Stub& stub) {
  if (invocation.arguments.size() != 2)
    return absl::InvalidArgumentError("`user revoke` needs one name");
  grpc::ClientContext context;
  SetDeadline(context);
  v1::RevokeUserRequest request;
  request.set_name(invocation.arguments[1]);
  v1::RevokeUserResponse answer;
  if (absl::Status status = invocation.Check(stub.RevokeUser(&context, request, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "revoked " << request.name() << "; closed " << answer.sessions_closed()
                 << (answer.sessions_closed() == 1 ? " session\n" : " sessions\n");
  return absl::OkStatus();
}

}  // namespace

absl::Status RunUser(Invocation& invocation) {
  auto stub = v1::AdminService::NewStub(invocation.channel);
  const std::string what = invocation.arguments.empty() ? "" : invocation.arguments[0];
  if (what == "add") return Add(invocation, *stub);
  if (what == "revoke") return Revoke(invocation, *stub);
  if (what == "list" && invocation.arguments.size() == 1) return List(invocation, *stub);
  return absl::InvalidArgumentError("expected `add NAME`, `list` or `revoke NAME`");
}

}  // namespace kiln::cli
