// kiln kernels [PROGRAM]
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "clients/cli/command.h"
#include "clients/cli/find_program.h"
#include "clients/cli/kernel_table.h"
#include "kiln/v1/program.grpc.pb.h"

namespace kiln::cli {

absl::Status RunKernels(Invocation& invocation) {
  v1::ListKernelsRequest request;
  if (invocation.arguments.size() > 1)
    return absl::InvalidArgumentError("expected at most one program");
  if (!invocation.arguments.empty()) {
    absl::StatusOr<v1::ListProgramsResponse> programs = ListPrograms(invocation);
    if (!programs.ok()) return programs.status();
    absl::StatusOr<std::string> digest = FindProgram(*programs, invocation.arguments[0]);
    if (!digest.ok()) return digest.status();
    request.set_program_digest(*digest);
  }
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListKernelsResponse answer;
  auto stub = v1::ProgramService::NewStub(invocation.channel);
  if (absl::Status status = invocation.Check(stub->ListKernels(&context, request, &answer));
      !status.ok())
    return status;
  // The most expensive first, by the time of all launches in a run.
  std::stable_sort(
      answer.mutable_kernels()->begin(), answer.mutable_kernels()->end(),
      [](const v1::Kernel& a, const v1::Kernel& b) { return SecondsPerRun(a) > SecondsPerRun(b); });
  if (invocation.json) return invocation.PrintJson(answer);
  if (answer.kernels().empty()) {
    invocation.out << "no kernel is loaded\n";
    return absl::OkStatus();
  }
  Table table = KernelTable(answer.kernels());
  return invocation.PrintTable(table);
}

}  // namespace kiln::cli
