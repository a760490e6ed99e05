// kiln audit [--follow] | verify
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// For 16 MiB and a busy disk.
constexpr int kVerifySecondsMax = 60;

absl::Status VerifyLog(Invocation& invocation) {
  auto stub = v1::AdminService::NewStub(invocation.channel);
  grpc::ClientContext context;
  SetDeadline(context, kVerifySecondsMax);
  v1::VerifyAuditLogResponse answer;
  absl::Status status = invocation.Check(stub->VerifyAuditLog(&context, {}, &answer));
  if (!status.ok()) return status;
  if (invocation.json) {
    status = invocation.PrintJson(answer);
  } else if (!answer.has_problem()) {
    invocation.out << answer.events() << " events are as they were written";
    if (answer.unprotected_events() > 0)
      invocation.out << "; " << answer.unprotected_events()
                     << " before them, of a version without seals, are not sealed";
    if (!answer.last_seal().empty())
      invocation.out << "\nthe last one is event " << answer.last_number() << " with the seal "
                     << Printable(answer.last_seal());
    invocation.out << '\n';
  }
  if (!status.ok() || !answer.has_problem()) return status;
  const v1::AuditProblem& problem = answer.problem();
  return absl::DataLossError(
      absl::StrCat(problem.file(), ":", problem.line(), ": this line ", problem.what()));
}

}  // namespace

absl::Status RunAudit(Invocation& invocation) {
  if (invocation.arguments == std::vector<std::string>{"verify"}) return VerifyLog(invocation);
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
