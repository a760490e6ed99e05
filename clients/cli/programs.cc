// kiln programs
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/find_program.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/program.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// Lists the programs that are being compiled or run for the first time. An older daemon without
// this call lists none.
absl::StatusOr<v1::ListFirstCallsResponse> ListFirstCalls(const Invocation& invocation) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListFirstCallsResponse answer;
  auto stub = v1::ProgramService::NewStub(invocation.channel);
  const grpc::Status called = stub->ListFirstCalls(&context, {}, &answer);
  if (called.error_code() == grpc::StatusCode::UNIMPLEMENTED) return v1::ListFirstCallsResponse();
  if (absl::Status status = invocation.Check(called); !status.ok()) return status;
  return answer;
}

void PrintFirstCalls(const v1::ListFirstCallsResponse& answer, std::ostream& out) {
  if (answer.first_calls().empty()) return;
  Table table({"first call of", "session", "at", ">kernels", ">made", ">time so far"});
  for (const v1::FirstCall& call : answer.first_calls()) {
    table.Add({Printable(call.name()), Printable(call.session()), Printable(call.part()),
               CountCell(call.kernels()), CountCell(call.kernels_made()),
               DurationCell(call.seconds())});
  }
  table.Print(out);
  out << '\n';
}

}  // namespace

absl::Status RunPrograms(Invocation& invocation) {
  if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) return status;
  absl::StatusOr<v1::ListProgramsResponse> answer = ListPrograms(invocation);
  if (!answer.ok()) return answer.status();
  if (invocation.json) return invocation.PrintJson(*answer);

  const absl::StatusOr<v1::ListFirstCallsResponse> first_calls = ListFirstCalls(invocation);
  if (!first_calls.ok()) return first_calls.status();
  PrintFirstCalls(*first_calls, invocation.out);
  Table table({"program", "name", "device", ">kernels", ">distinct", ">cached", ">compile", ">runs",
               ">time a run", ">arena"});
  for (const v1::Program& program : answer->programs()) {
    const double mean =
        program.runs() == 0 ? 0 : program.device_seconds() / static_cast<double>(program.runs());
    table.Add({ShortDigest(program.digest()), program.name(), DevicesText(program),
               CountCell(program.kernels()), CountCell(program.distinct_kernels()),
               CountCell(program.kernels_from_cache()), DurationCell(program.compile_seconds()),
               CountCell(program.runs()), DurationCell(mean), BytesCell(program.arena_bytes())});
  }
  if (table.empty()) {
    invocation.out << "no program has been compiled since the daemon started\n";
    return absl::OkStatus();
  }
  return invocation.PrintTable(table);
}

}  // namespace kiln::cli
