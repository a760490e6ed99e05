// The kinds of machine code that kernels for GPUs and for OpenCL's devices are compiled to: one
// table, each row with what reads the code on this machine and what runs it.
#ifndef KILN_TESTS_NUMERICS_MACHINE_CODE_H_
#define KILN_TESTS_NUMERICS_MACHINE_CODE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/kernel/kernel.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/command_list.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"
#include "tests/numerics/graph_checks.h"

namespace kiln::numerics {

// Where schedules for blocks of threads are tested.
struct ThreadTarget {
  drivers::Target target;
  bool is_read = true;
  bool is_run = true;
};

struct WrittenKernel {
  drivers::KernelImage image;
  drivers::Target target;  // that it was compiled for
};

// As the compiler does for the target's architecture (compiler/machine_codes.h).
schedule::Schedule ChooseForTarget(const kernel::Kernel& kernel, const drivers::Target& target);
absl::StatusOr<drivers::KernelImage> CompileForTarget(const kernel::Kernel& kernel,
                                                      const schedule::Schedule& schedule,
                                                      const drivers::Target& target);

// A row of the table.
struct MachineCode {
  std::string name;  // as tests' names begin
  // A small GPU, so that small kernels get blocks of threads: graphs are compiled for it and run.
  drivers::Target target;
  // One for each generation of processors; the code of the table's cases is read for all of them.
  std::vector<drivers::Target> generations;
  std::vector<ThreadTarget> thread_targets;
  ClosenessRule closeness;

  schedule::Schedule (*choose)(const kernel::Kernel& kernel,
                               const drivers::Target& target) = ChooseForTarget;
  // The errors of codegen::CompileKernel.
  absl::StatusOr<drivers::KernelImage> (*compile)(const kernel::Kernel& kernel,
                                                  const schedule::Schedule& schedule,
                                                  const drivers::Target& target) = CompileForTarget;
  // What the code says of itself that image or target do not say, and what tools that are installed
  // find wrong with it. Empty: nothing.
  std::string (*what_is_wrong)(const std::vector<WrittenKernel>& kernels);
  // Which tools `what_is_wrong` had to do without; empty: none.
  std::string (*why_unread)();
  // Why nothing runs on this machine; empty: it does.
  std::string (*why_not_run)();
  // INTERNAL: what runs it says so, or a thread raced, waited for ever or touched what is not the
  // kernel's.
  absl::Status (*run)(const drivers::KernelImage& image, const drivers::Target& target,
                      absl::Span<ops::HostTensor* const> globals);
};

// PTX, run by its interpreter (tests/stand_ins/cuda/ptx) and read by ptxas.
const MachineCode& Ptx();
// Code objects for AMD's GPUs, run by their twins for the host (tests/stand_ins/hsa/object) and
// read by LLVM's tools.
const MachineCode& Amdgcn();
// SPIR-V, run by the driver for Level Zero on the stand-in for its library
// (tests/stand_ins/level_zero) and read by spirv-val; with KILN_TEST_OCLOC=dg2 or pvc also by
// Intel's compiler for GPUs (ocloc).
const MachineCode& Spirv();
// OpenCL C, run by this machine's OpenCL device.
const MachineCode& OpenClC();
// The same with schedules for a processor, wherever they fit OpenCL's private memory.
const MachineCode& OpenClCAsForCpu();

// The first four.
std::vector<const MachineCode*> MachineCodes();

// PTX for sm_80 unless another generation is named, with the version of PTX that knows it.
drivers::Target PtxTarget(const std::string& processor = "sm_80",
                          const std::string& features = "+ptx78");
// A processor of AMD's, and the threads of its subgroups.
drivers::Target AmdgcnTarget(const std::string& processor = "gfx1100", int wave = 32);

// The grid in two parts, for a launch of each, where the image runs parts and has two points.
std::vector<drivers::GridRange> PartsOf(const drivers::KernelImage& image);

// Compiles and runs. The errors of both.
absl::Status CompileAndRun(const MachineCode& code, const kernel::Kernel& kernel,
                           const schedule::Schedule& schedule,
                           absl::Span<ops::HostTensor* const> globals);
// Runs graphs through all passes, kernel by kernel, with the schedules that the row chooses.
RunGraph On(const MachineCode& code);

// What Kiln's interpreter makes of GlobalsOf(kernel).
absl::StatusOr<std::vector<ops::HostTensor>> Interpreted(const kernel::Kernel& kernel);
// Empty if the image gives that, within the tolerance; else the first difference, or the error's
// text.
std::string Disagreement(const MachineCode& code, const kernel::Kernel& kernel,
                         const drivers::KernelImage& image, const drivers::Target& target,
                         const std::vector<ops::HostTensor>& interpreted, double tolerance);
std::string Disagreement(const MachineCode& code, const kernel::Kernel& kernel,
                         const drivers::KernelImage& image, const drivers::Target& target,
                         double tolerance);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_MACHINE_CODE_H_
