// kiln drain [--undo] [DEVICE]
#include <grpcpp/grpcpp.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// Enough for a daemon with much to write.
constexpr absl::Duration kPatience = absl::Minutes(10);
constexpr absl::Duration kPause = absl::Milliseconds(50);

// Returns true if a daemon with that start time answers, or if it does not answer in time.
bool StillRuns(v1::AdminService::Stub& stub, const google::protobuf::Timestamp& started) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetDaemonResponse answer;
  const grpc::Status status = stub.GetDaemon(&context, {}, &answer);
  if (!status.ok()) return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return answer.started().seconds() == started.seconds() &&
         answer.started().nanos() == started.nanos();
}

absl::Status Stop(Invocation& invocation, v1::AdminService::Stub& stub) {
  grpc::ClientContext before_context;
  SetDeadline(before_context);
  v1::GetDaemonResponse before;
  absl::Status status = invocation.Check(stub.GetDaemon(&before_context, {}, &before));
  if (!status.ok()) return status;
  grpc::ClientContext context;
  SetDeadline(context);
  v1::DrainRequest request;
  request.set_stop(true);
  v1::DrainResponse answer;
  status = invocation.Check(stub.Drain(&context, request, &answer));
  if (!status.ok()) return status;
  const absl::Time deadline = absl::Now() + kPatience;
  while (StillRuns(stub, before.started())) {
    if (absl::Now() > deadline)
      return absl::DeadlineExceededError("the daemon is still writing its sessions; see its log");
    absl::SleepFor(kPause);
  }
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "the daemon has stopped; start it again to continue its sessions\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status RunDrain(Invocation& invocation) {
  v1::DrainRequest request;
  for (const std::string& argument : invocation.arguments) {
    if (argument == "--undo" && !request.undo()) {
      request.set_undo(true);
    } else if (argument.rfind("--", 0) == 0 || !request.device().empty()) {
      return absl::InvalidArgumentError("unexpected: " + argument);
    } else {
      request.set_device(argument);
    }
  }
  auto stub = v1::AdminService::NewStub(invocation.channel);
  if (!request.undo() && request.device().empty()) return Stop(invocation, *stub);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::DrainResponse answer;
  if (absl::Status status = invocation.Check(stub->Drain(&context, request, &answer)); !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << (request.device().empty() ? "all devices" : Printable(request.device()))
                 << (request.undo() ? " in use again\n"
                                    : ": no new sessions and programs from now on\n");
  return absl::OkStatus();
}

}  // namespace kiln::cli
