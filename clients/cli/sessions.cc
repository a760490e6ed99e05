// kiln sessions [close NAME]
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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
std::string SnapshotOf(const v1::Session& session) {
  if (session.snapshot_seconds() == 0) return "";
  if (!session.has_snapshot_taken()) return "none";
  const absl::Duration age =
      absl::Now() - absl::FromUnixSeconds(session.snapshot_taken().seconds());
  return absl::StrCat(std::max<int64_t>(0, absl::ToInt64Seconds(age)), " s ago");
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
               StateOf(session), Bytes(session.memory_bytes()), absl::StrCat(session.buffers()),
               absl::StrCat(session.programs()), absl::StrCat(session.runs()),
               Duration(session.device_seconds()), SnapshotOf(session)});
  }
  if (table.empty()) {
    invocation.out << "no session is open\n";
    return absl::OkStatus();
  }
  table.Print(invocation.out);
  return absl::OkStatus();
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
