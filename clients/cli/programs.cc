// kiln programs
#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/find_program.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"

namespace kiln::cli {

absl::Status RunPrograms(Invocation& invocation) {
  if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) return status;
  absl::StatusOr<v1::ListProgramsResponse> answer = ListPrograms(invocation);
  if (!answer.ok()) return answer.status();
  if (invocation.json) return invocation.PrintJson(*answer);

  Table table({"program", "name", "device", ">kernels", ">distinct", ">cached", ">compile", ">runs",
               ">time a run", ">arena"});
  for (const v1::Program& program : answer->programs()) {
    const double mean =
        program.runs() == 0 ? 0 : program.device_seconds() / static_cast<double>(program.runs());
    table.Add({ShortDigest(program.digest()), program.name(), DevicesText(program),
               absl::StrCat(program.kernels()), absl::StrCat(program.distinct_kernels()),
               absl::StrCat(program.kernels_from_cache()), Duration(program.compile_seconds()),
               absl::StrCat(program.runs()), Duration(mean), Bytes(program.arena_bytes())});
  }
  if (table.empty()) {
    invocation.out << "no program has been compiled since the daemon started\n";
    return absl::OkStatus();
  }
  table.Print(invocation.out);
  return absl::OkStatus();
}

}  // namespace kiln::cli
