// kiln version
#include <grpcpp/grpcpp.h>

#include "clients/cli/command.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {

std::string ClientVersion() { return KILN_VERSION; }

absl::Status RunVersion(Invocation& invocation) {
  if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) return status;
  if (!invocation.json) invocation.out << "kiln   " << ClientVersion() << std::endl;
  auto stub = v1::AdminService::NewStub(invocation.channel);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetDaemonResponse answer;
  if (absl::Status status = invocation.Check(stub->GetDaemon(&context, {}, &answer)); !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "kilnd  " << Printable(answer.version()) << " at " << invocation.address
                 << '\n';
  return absl::OkStatus();
}

}  // namespace kiln::cli
