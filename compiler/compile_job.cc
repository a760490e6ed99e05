// Compiles a job in a worker process.
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/codegen.h"
#include "compiler/compiler.h"
#include "compiler/kernel/kernel.h"
#include "compiler/machine_codes.h"
#include "compiler/rehearse.h"
#include "compiler/schedule/schedule.h"

namespace kiln::compiler {

absl::StatusOr<drivers::KernelImage> CompileJob(const workers::KernelJob& job) {
  if (job.rehearsal) {
    if (absl::Status status = Rehearse(job); !status.ok()) return status;
    drivers::KernelImage none;
    none.name = job.name;
    none.architecture = job.target.architecture;
    return none;
  }
  const absl::StatusOr<const codegen::MachineCode*> machine =
      FindMachineCode(job.target.architecture);
  if (!machine.ok()) return machine.status();
  ir::Context context;
  absl::StatusOr<kernel::Kernel> kernel = kernel::ParseKernel(job.kernel, context);
  const absl::StatusOr<schedule::Schedule> schedule = schedule::Parse(job.schedule);
  // Both texts were printed by this compiler.
  for (const absl::Status& status : {kernel.status(), schedule.status()}) {
    if (!status.ok())
      return absl::InternalError(absl::StrCat("its text cannot be parsed: ", status.message()));
  }
  kernel->name = job.name;
  return codegen::CompileKernel(**machine, *kernel, *schedule, job.target);
}

}  // namespace kiln::compiler
