// kiln sessions [close NAME]
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/session.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

std::string ClientOf(const v1::Session& session) {
  const v1::ClientInfo& client = session.client();
  if (!client.description().empty()) return client.description();
  return absl::StrCat(client.name(), " ", client.version());
}

std::string StateOf(const v1::Session& session) {
  const std::string state = session.connected() ? "connected" : "away";
  return session.detached_name().empty() ? state
                                         : absl::StrCat(state, " as ", session.detached_name());
}

// The age of the snapshot from which the session would be restored after a kill.
Cell SnapshotOf(const v1::Session& session, absl::Time now) {
  if (session.snapshot_seconds() == 0) return "";
  if (!session.has_snapshot_taken()) return "none";
  const absl::Duration age = now - absl::FromUnixSeconds(session.snapshot_taken().seconds());
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(age));
  return {absl::StrCat(seconds, " s ago"), static_cast<double>(seconds)};
}

absl::Status ListSessions(Invocation& invocation, v1::SessionService::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListSessionsResponse answer;
  if (absl::Status status = invocation.Check(stub.ListSessions(&context, {}, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);

  Table table({"session", "user", "client", "device", "state", ">memory", ">buffers", ">programs",
               ">runs", ">device time", ">snapshot"});
  for (const v1::Session& session : answer.sessions()) {
    table.Add({session.name(), session.user(), ClientOf(session), session.device(),
               StateOf(session), BytesCell(session.memory_bytes()), CountCell(session.buffers()),
               CountCell(session.programs()), CountCell(session.runs()),
               DurationCell(session.device_seconds()), SnapshotOf(session, invocation.now())});
  }
  if (table.empty()) {
    invocation.out << "no session is open\n";
    return absl::OkStatus();
  }
  return invocation.PrintTable(table);
}

absl::Status Close(Invocation& invocation, v1::SessionService::Stub& stub) {
  if (invocation.arguments.size() != 2)
    return absl::InvalidArgumentError("`sessions close` needs one name");
  grpc::ClientContext context;
  SetDeadline(context);
  v1::EndSessionRequest request;
  request.set_name(invocation.arguments[1]);
  v1::EndSessionResponse answer;
  if (absl::Status status = invocation.Check(stub.EndSession(&context, request, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "closed " << Printable(answer.name()) << " of " << Printable(answer.user())
                 << '\n';
  return absl::OkStatus();
}

}  // namespace

absl::Status RunSessions(Invocation& invocation) {
  auto stub = v1::SessionService::NewStub(invocation.channel);
  if (invocation.arguments.empty()) return ListSessions(invocation, *stub);
  if (invocation.arguments[0] == "close") return Close(invocation, *stub);
  return absl::InvalidArgumentError("expected nothing or `close NAME`");
}

}  // namespace kiln::cli
