// The kinds of machine code for GPUs and OpenCL devices: one table, each row with the tools that
// read the code on this machine and the functions that run it.
#ifndef KILN_TESTS_NUMERICS_MACHINE_CODES_MACHINE_CODE_H_
#define KILN_TESTS_NUMERICS_MACHINE_CODES_MACHINE_CODE_H_

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
#include "tests/numerics/machine_codes/graph_checks.h"

namespace kiln::numerics {

// A target for which schedules for blocks of threads are tested.
struct ThreadTarget {
  drivers::Target target;
  bool is_read = true;
  bool is_run = true;
};

struct WrittenKernel {
  drivers::KernelImage image;
  drivers::Target target;  // for which it was compiled
};

// As the compiler does for the target's architecture (compiler/machine_codes.h).
schedule::Schedule ChooseForTarget(const kernel::Kernel& kernel, const drivers::Target& target);
absl::StatusOr<drivers::KernelImage> CompileForTarget(const kernel::Kernel& kernel,
                                                      const schedule::Schedule& schedule,
                                                      const drivers::Target& target);

// A row of the table.
struct MachineCode {
  std::string name;  // the prefix of tests' names
  // A small GPU, so that small kernels get blocks of threads; graphs are compiled and run for it.
  drivers::Target target;
  // One for each generation of processors; the code of the table's cases is read for all of them.
  std::vector<drivers::Target> generations;
  std::vector<ThreadTarget> thread_targets;
  ClosenessRule closeness;

  schedule::Schedule (*choose)(const kernel::Kernel& kernel,
                               const drivers::Target& target) = ChooseForTarget;
  // Returns the errors of codegen::CompileKernel.
  absl::StatusOr<drivers::KernelImage> (*compile)(const kernel::Kernel& kernel,
                                                  const schedule::Schedule& schedule,
                                                  const drivers::Target& target) = CompileForTarget;
  // Returns contradictions between the code and its image or target, and errors that installed
  // tools find; empty if there are none.
  std::string (*what_is_wrong)(const std::vector<WrittenKernel>& kernels);
  // Returns the tools that `what_is_wrong` had to do without; empty if none.
  std::string (*why_unread)();
  // Returns why nothing runs on this machine; empty if the code runs.
  std::string (*why_not_run)();
  // Runs an image. INTERNAL: the runner failed, or a thread raced, hung or accessed memory that is
  // not the kernel's.
  absl::Status (*run)(const drivers::KernelImage& image, const drivers::Target& target,
                      absl::Span<ops::HostTensor* const> globals);
};

// PTX, run by its interpreter (tests/stand_ins/cuda/ptx) and read by ptxas.
const MachineCode& Ptx();
// Code objects for AMD's GPUs, run as their twins for the host (tests/stand_ins/hsa/object) and
// read by LLVM's tools.
const MachineCode& Amdgcn();
// SPIR-V, run by the driver for Level Zero on the stand-in for its library
// (tests/stand_ins/level_zero) and read by spirv-val; with KILN_TEST_OCLOC=dg2 or pvc also by
// Intel's compiler for GPUs (ocloc).
const MachineCode& Spirv();
// OpenCL C, run by this machine's OpenCL device.
const MachineCode& OpenClC();
// The same with schedules for a processor, if they fit into OpenCL's private memory.
const MachineCode& OpenClCAsForCpu();

// The first four.
std::vector<const MachineCode*> MachineCodes();

// Returns a target for PTX, by default for sm_80, with the PTX version that supports it.
drivers::Target PtxTarget(const std::string& processor = "sm_80",
                          const std::string& features = "+ptx78");
// Returns a target for an AMD processor with `wave` threads in a subgroup.
drivers::Target AmdgcnTarget(const std::string& processor = "gfx1100", int wave = 32);

// Returns the grid in two parts, for a launch of each, if the image supports parts and has two
// points.
std::vector<drivers::GridRange> PartsOf(const drivers::KernelImage& image);

// Compiles and runs; returns the errors of both.
absl::Status CompileAndRun(const MachineCode& code, const kernel::Kernel& kernel,
                           const schedule::Schedule& schedule,
                           absl::Span<ops::HostTensor* const> globals);
// Returns a function that runs graphs through all passes, kernel by kernel, with the schedules that
// the row chooses.
RunGraph On(const MachineCode& code);

// Returns the results of Kiln's interpreter for GlobalsOf(kernel).
absl::StatusOr<std::vector<ops::HostTensor>> Interpreted(const kernel::Kernel& kernel);
// Returns an empty text if the image gives these results, within the tolerance; otherwise the first
// difference, or the error's text.
std::string Disagreement(const MachineCode& code, const kernel::Kernel& kernel,
                         const drivers::KernelImage& image, const drivers::Target& target,
                         const std::vector<ops::HostTensor>& interpreted, double tolerance);
std::string Disagreement(const MachineCode& code, const kernel::Kernel& kernel,
                         const drivers::KernelImage& image, const drivers::Target& target,
                         double tolerance);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_MACHINE_CODES_MACHINE_CODE_H_
