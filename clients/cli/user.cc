// kiln user add NAME [--role ROLE] [--by KIND] | list | revoke NAME | token …
#include <grpcpp/grpcpp.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

constexpr int64_t kDaysMax = 36500;  // the longest validity of a token

std::string Day(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(time.seconds()), absl::UTCTimeZone());
}

void PrintToken(Invocation& invocation, const v1::User& user, const std::string& token) {
  invocation.out << token << '\n';
  // On another stream, so that $(kiln user add ann) is the token.
  invocation.error << "This is " << Printable(user.name())
                   << "'s token, shown only once; keep it with `kiln login`, or set it as "
                      "KILN_TOKEN\n";
}

absl::Status Add(Invocation& invocation, v1::AdminService::Stub& stub) {
  v1::AddUserRequest request;
  for (size_t i = 1; i < invocation.arguments.size(); ++i) {
    const std::string& argument = invocation.arguments[i];
    if (absl::StartsWith(argument, "--role=")) {
      request.set_role(argument.substr(7));
    } else if (argument == "--role" && i + 1 < invocation.arguments.size()) {
      request.set_role(invocation.arguments[++i]);
    } else if (absl::StartsWith(argument, "--by=")) {
      request.add_identities(argument.substr(5));
    } else if (argument == "--by" && i + 1 < invocation.arguments.size()) {
      request.add_identities(invocation.arguments[++i]);
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
  PrintToken(invocation, answer.user(), answer.token());
  return absl::OkStatus();
}

absl::Status List(Invocation& invocation, v1::AdminService::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListUsersResponse answer;
  if (absl::Status status = invocation.Check(stub.ListUsers(&context, {}, &answer)); !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  Table table({"user", "role", "token", "also by", "added", "revoked", ">memory", ">device time"});
  for (const v1::User& user : answer.users()) {
    table.Add({user.name(), user.role().empty() ? "-" : user.role(),
               user.token_id().empty() ? "-" : user.token_id(),
               user.identities().empty() ? "-" : absl::StrJoin(user.identities(), ", "),
               user.has_created() ? Day(user.created()) : "-",
               user.has_revoked() ? Day(user.revoked()) : "-", BytesCell(user.memory_bytes()),
               DurationCell(user.device_seconds())});
  }
  if (table.empty()) {
    invocation.out << "there are no users; `kiln user add NAME` adds one\n";
    return absl::OkStatus();
  }
  return invocation.PrintTable(table);
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

// Parses "30d", "12h" or "90m"; the time must be above zero.
absl::StatusOr<uint64_t> ValidSeconds(const std::string& text) {
  absl::Duration time;
  int64_t days = 0;
  absl::string_view number = text;
  const bool is_time = absl::ConsumeSuffix(&number, "d")
                           ? absl::SimpleAtoi(number, &days) && days <= kDaysMax
                           : absl::ParseDuration(text, &time);
  time += absl::Hours(24 * days);
  if (is_time && time >= absl::Seconds(1) && time <= absl::Hours(24 * kDaysMax))
    return static_cast<uint64_t>(absl::ToInt64Seconds(time));
  return absl::InvalidArgumentError(absl::StrCat("--expires takes a time such as 30d, 12h or 90m, ",
                                                 kDaysMax, "d at most, not ", text));
}

absl::Status AddToken(Invocation& invocation, v1::AdminService::Stub& stub) {
  v1::AddTokenRequest request;
  for (size_t i = 2; i < invocation.arguments.size(); ++i) {
    absl::string_view argument = invocation.arguments[i];
    if (argument == "--expires" && i + 1 < invocation.arguments.size()) {
      argument = invocation.arguments[++i];
    } else if (!absl::ConsumePrefix(&argument, "--expires=")) {
      if (!request.user().empty() || absl::StartsWith(argument, "-"))
        return absl::InvalidArgumentError(absl::StrCat("unexpected: ", argument));
      request.set_user(std::string(argument));
      continue;
    }
    const auto seconds = ValidSeconds(std::string(argument));
    if (!seconds.ok()) return seconds.status();
    request.set_valid_seconds(*seconds);
  }
  if (request.user().empty()) return absl::InvalidArgumentError("`user token add` needs a name");
  grpc::ClientContext context;
  SetDeadline(context);
  v1::AddTokenResponse answer;
  if (absl::Status status = invocation.Check(stub.AddToken(&context, request, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  PrintToken(invocation, answer.user(), answer.token());
  return absl::OkStatus();
}

absl::Status ListTokens(Invocation& invocation, v1::AdminService::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListUsersResponse answer;
  if (absl::Status status = invocation.Check(stub.ListUsers(&context, {}, &answer)); !status.ok())
    return status;
  const std::string& name = invocation.arguments[2];
  for (const v1::User& user : answer.users()) {
    if (user.name() != name) continue;
    if (invocation.json) return invocation.PrintJson(user);
    Table table({"token", "added", "expires"});
    for (const v1::Token& token : user.tokens())
      table.Add(
          {token.id(), Day(token.created()), token.has_expires() ? Day(token.expires()) : "never"});
    return invocation.PrintTable(table);
  }
  return absl::NotFoundError(
      absl::StrCat("there is no user ", Printable(name), "; `kiln user list` shows all"));
}

absl::Status RevokeToken(Invocation& invocation, v1::AdminService::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::RevokeTokenRequest request;
  request.set_token_id(invocation.arguments[2]);
  v1::RevokeTokenResponse answer;
  if (absl::Status status = invocation.Check(stub.RevokeToken(&context, request, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  const std::string name = Printable(answer.user().name());
  invocation.out << "revoked " << Printable(request.token_id()) << "; " << name
                 << "'s sessions continue\n";
  if (answer.user().tokens().empty())
    invocation.error << name << " has no tokens left; `kiln user token add " << name
                     << "` makes one\n";
  return absl::OkStatus();
}

absl::Status Token(Invocation& invocation, v1::AdminService::Stub& stub) {
  const size_t arguments = invocation.arguments.size();
  const std::string what = arguments < 2 ? "" : invocation.arguments[1];
  if (what == "add") return AddToken(invocation, stub);
  if (what == "list" && arguments == 3) return ListTokens(invocation, stub);
  if (what == "revoke" && arguments == 3) return RevokeToken(invocation, stub);
  return absl::InvalidArgumentError(
      "expected `token add NAME`, `token list NAME` or `token revoke ID`");
}

}  // namespace

absl::Status RunUser(Invocation& invocation) {
  auto stub = v1::AdminService::NewStub(invocation.channel);
  const std::string what = invocation.arguments.empty() ? "" : invocation.arguments[0];
  if (what == "add") return Add(invocation, *stub);
  if (what == "revoke") return Revoke(invocation, *stub);
  if (what == "list" && invocation.arguments.size() == 1) return List(invocation, *stub);
  if (what == "token") return Token(invocation, *stub);
  return absl::InvalidArgumentError("expected `add NAME`, `list`, `revoke NAME` or `token`");
}

}  // namespace kiln::cli
