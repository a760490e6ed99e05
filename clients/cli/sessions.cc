// kiln sessions
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/session.grpc.pb.h"

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

}  // namespace

absl::Status RunSessions(Invocation& invocation) {
  if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) return status;
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListSessionsResponse answer;
  auto stub = v1::SessionService::NewStub(invocation.channel);
  if (absl::Status status = invocation.Check(stub->ListSessions(&context, {}, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);

  Table table({"session", "user", "client", "device", "state", ">memory", ">buffers", ">programs",
               ">runs", ">device time"});
  for (const v1::Session& session : answer.sessions()) {
    table.Add({session.name(), session.user(), ClientOf(session), session.device(),
               StateOf(session), Bytes(session.memory_bytes()),
               absl::StrCat(session.buffers()), absl::StrCat(session.programs()),
               absl::StrCat(session.runs()), Duration(session.device_seconds())});
  }
  if (table.empty()) {
    invocation.out << "no session is open\n";
    return absl::OkStatus();
  }
  table.Print(invocation.out);
  return absl::OkStatus();
}

}  // namespace kiln::cli
