// kiln audit [--follow]
#include <grpcpp/grpcpp.h>

#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {

absl::Status RunAudit(Invocation& invocation) {
  v1::ListAuditEventsRequest request;
  if (invocation.arguments == std::vector<std::string>{"--follow"}) {
    request.set_follow(true);
  } else if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) {
    return status;
  }
  auto stub = v1::AdminService::NewStub(invocation.channel);
  grpc::ClientContext context;
  if (!request.follow()) SetDeadline(context);
  const auto reader = stub->ListAuditEvents(&context, request);
  v1::AuditEvent event;
  while (reader->Read(&event)) {
    if (invocation.json) {
      if (absl::Status status = invocation.PrintJsonLine(event); !status.ok()) return status;
      continue;
    }
    const absl::Time time =
        absl::FromUnixSeconds(event.time().seconds()) + absl::Nanoseconds(event.time().nanos());
    invocation.out << absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone());
    for (const std::string& value :
         {event.user(), event.action(), event.subject(), event.outcome()})
      invocation.out << "  " << (value.empty() ? "-" : Printable(value));
    invocation.out << std::endl;  // flushes, for readers that follow
  }
  return invocation.Check(reader->Finish());
}

}  // namespace kiln::cli
