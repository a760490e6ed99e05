// kiln cache [clear]
#include <grpcpp/grpcpp.h>

#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

absl::Status Clear(Invocation& invocation, v1::AdminService::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ClearCacheResponse answer;
  if (absl::Status status = invocation.Check(stub.ClearCache(&context, {}, &answer)); !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "deleted " << answer.kernels_deleted()
                 << " kernels; loaded programs keep their kernels\n";
  return absl::OkStatus();
}

absl::Status Show(Invocation& invocation, v1::AdminService::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetCacheResponse answer;
  if (absl::Status status = invocation.Check(stub.GetCache(&context, {}, &answer)); !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "path     " << Printable(answer.path()) << '\n'
                 << "kernels  " << answer.kernels() << " in " << Bytes(answer.bytes()) << '\n'
                 << "hits     " << answer.hits() << '\n'
                 << "misses   " << answer.misses() << '\n';
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCache(Invocation& invocation) {
  auto stub = v1::AdminService::NewStub(invocation.channel);
  if (invocation.arguments.empty()) return Show(invocation, *stub);
  if (invocation.arguments.size() == 1 && invocation.arguments[0] == "clear")
    return Clear(invocation, *stub);
  return absl::InvalidArgumentError("expected nothing or `clear`");
}

}  // namespace kiln::cli
