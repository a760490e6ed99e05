// kiln quota [set USER NAME=LIMIT...]
#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/byte_count.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

std::string AmountText(const v1::ResourceQuota& quota, uint64_t amount) {
  return quota.in_bytes() ? Bytes(amount) : absl::StrCat(amount);
}

// A limit of 0 means no limit.
std::string LimitText(const v1::ResourceQuota& quota) {
  if (quota.limit() == 0) return "-";
  return absl::StrCat(AmountText(quota, quota.limit()), quota.is_set() ? "" : " (default)");
}

void AddRows(const v1::UserQuotas& user, Table* table) {
  for (const v1::ResourceQuota& quota : user.resources()) {
    table->Add({user.user(), quota.resource(), quota.device().empty() ? "-" : quota.device(),
                Cell(AmountText(quota, quota.used()), static_cast<double>(quota.used())),
                Cell(LimitText(quota), static_cast<double>(quota.limit()))});
  }
}

Table NewTable() { return Table({"user", "resource", "device", ">used", ">limit"}); }

absl::Status ListQuotas(Invocation& invocation, v1::AdminService::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListQuotasResponse answer;
  if (absl::Status status = invocation.Check(stub.ListQuotas(&context, {}, &answer)); !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  Table table = NewTable();
  for (const v1::UserQuotas& user : answer.users()) AddRows(user, &table);
  if (table.empty()) {
    invocation.out << "no user has connected yet, and no limits are set\n";
    return absl::OkStatus();
  }
  return invocation.PrintTable(table);
}

// Parses "sessions=8", "device_memory=4GiB", "buffers=none" or "buffers=default".
absl::Status AddChange(const std::string& text, v1::SetQuotaRequest* request) {
  const std::pair<std::string, std::string> change = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto& [resource, limit] = change;
  if (resource.empty() || limit.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", text, " is not NAME=LIMIT, such as sessions=8, device_memory=4GiB, buffers=none or ",
        "buffers=default"));
  }
  if (limit == "default") {
    request->add_defaults(resource);
    return absl::OkStatus();
  }
  const auto amount = limit == "none" ? absl::StatusOr<int64_t>(0) : ParseBytes(limit);
  if (!amount.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "`: a limit is a number such as 200, bytes such as 4GiB, ",
                     "\"none\" or \"default\", and at least 0"));
  }
  (*request->mutable_limits())[resource] = static_cast<uint64_t>(*amount);
  return absl::OkStatus();
}

// Warns if no user has the name: it may be misspelled, or belong to a user whom the daemon will
// know only after they connect.
absl::Status WarnOfStrangers(Invocation& invocation, v1::AdminService::Stub& stub,
                             const std::string& name) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListUsersResponse answer;
  if (absl::Status status = invocation.Check(stub.ListUsers(&context, {}, &answer)); !status.ok())
    return status;
  for (const v1::User& user : answer.users()) {
    if (user.name() == name) return absl::OkStatus();
  }
  invocation.error
      << "note: no user is called " << Printable(name)
      << " yet. The limits apply when there is one: `kiln user add` adds a user; system accounts "
         "and users with certificates appear when they first connect\n";
  return absl::OkStatus();
}

absl::Status SetQuota(Invocation& invocation, v1::AdminService::Stub& stub) {
  if (invocation.arguments.size() < 3)
    return absl::InvalidArgumentError("`quota set` needs a user and limits");
  v1::SetQuotaRequest request;
  request.set_user(invocation.arguments[1]);
  for (size_t i = 2; i < invocation.arguments.size(); ++i)
    if (absl::Status status = AddChange(invocation.arguments[i], &request); !status.ok())
      return status;
  if (absl::Status status = WarnOfStrangers(invocation, stub, request.user()); !status.ok())
    return status;
  grpc::ClientContext context;
  SetDeadline(context);
  v1::SetQuotaResponse answer;
  if (absl::Status status = invocation.Check(stub.SetQuota(&context, request, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  Table table = NewTable();
  AddRows(answer.user(), &table);
  table.Print(invocation.out);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunQuota(Invocation& invocation) {
  auto stub = v1::AdminService::NewStub(invocation.channel);
  if (invocation.arguments.empty()) return ListQuotas(invocation, *stub);
  if (invocation.arguments[0] == "set") return SetQuota(invocation, *stub);
  return absl::InvalidArgumentError("expected nothing or `set USER NAME=LIMIT...`");
}

}  // namespace kiln::cli
