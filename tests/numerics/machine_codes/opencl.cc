// Kernels as OpenCL C.
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/opencl_c/kernel.h"
#include "compiler/codegen/opencl_c/source.h"
#include "compiler/codegen/opencl_c/testing/runner.h"
#include "compiler/ir/dtype.h"
#include "compiler/machine_codes.h"
#include "compiler/proof/prove.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/threads/synchronize.h"
#include "compiler/search/heuristics/heuristic.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/numerics/machine_codes/some_gpu.h"
#include "tests/opencl_platform.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;

// Opened once.
const absl::StatusOr<std::unique_ptr<codegen::OpenClRunner>>& Runner() {
  static const auto& runner = *[] {
    auto* opened = new absl::StatusOr<std::unique_ptr<codegen::OpenClRunner>>(
        codegen::OpenClRunner::Open(OpenClPlatformToTest()));
    if (opened->ok()) std::printf("on %s\n", (**opened)->DeviceName().c_str());
    return opened;
  }();
  return runner;
}

// Returns a CPU target that is the same on every machine.
drivers::Target SomeCpu() {
  drivers::Target target;
  target.architecture = "x86-64";
  target.limits.vector_bytes = 32;
  target.limits.compute_units = 2;
  return target;
}

schedule::Schedule ChooseAsForCpu(const kernel::Kernel& kernel, const drivers::Target& cpu) {
  schedule::Schedule chosen = search::Choose(kernel, cpu);
  const auto program = schedule::Apply(kernel, chosen);
  const bool fits = !program.ok() || codegen::CheckOpenClSupported(*program).ok();
  return fits ? chosen : ChooseForTarget(kernel, SomeGpu());
}

// With a parameter for each buffer, as OpenClRunner passes them.
absl::StatusOr<drivers::KernelImage> CompileToOpenCl(const kernel::Kernel& kernel,
                                                     const schedule::Schedule& schedule,
                                                     const drivers::Target&) {
  if (!Runner().ok()) return Runner().status();
  drivers::Target target;
  target.architecture = codegen::kOpenClArchitecture;
  target.capabilities.fp64 = (*Runner())->HasFloat64();
  absl::Status supported =
      codegen::CheckSupported(**compiler::FindMachineCode(target.architecture), kernel, target);
  if (!supported.ok()) return supported;
  const auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status();
  supported = codegen::CheckOpenClSupported(*program);
  if (!supported.ok()) return supported;
  if (auto proved = proof::Prove(kernel, schedule, *program); !proved.ok()) return proved;
  drivers::KernelImage image;
  image.code = codegen::PrintSource(schedule::Synchronize(*program));
  image.grid_size = program->grid_size();
  image.block_size = program->threads;
  return image;
}

absl::Status RunOpenCl(const drivers::KernelImage& image, const drivers::Target&,
                       absl::Span<HostTensor* const> globals) {
  std::vector<std::vector<uint8_t>*> arguments;
  for (HostTensor* global : globals) arguments.push_back(&global->bytes);
  return (*Runner())->Run(image.code, image.grid_size, image.block_size, arguments);
}

// OpenCL 1.2, 7.4, plus the interpreter's half a unit in the last place. Ops that are computed in
// more digits and rounded are as accurate as elsewhere.
Closeness OpenClCloseness(const ops::OpDef& op, ir::DType dtype) {
  const Closeness closeness = ClosenessOf(op, dtype);
  if (ir::IsShortFloat(dtype)) return closeness;
  if (op.op == ir::Op::kPow) return {17, true};
  if (op.op == ir::Op::kExp2 || op.op == ir::Op::kLog2 || op.op == ir::Op::kSin) return {5, true};
  return closeness;
}

MachineCode Row() {
  return {.name = "opencl",
          .target = SomeGpu(),
          .generations = {},
          .thread_targets = {{SomeGpu()}},
          .closeness = OpenClCloseness,
          .compile = CompileToOpenCl,
          // The device's compiler reads it.
          .what_is_wrong = [](const std::vector<WrittenKernel>&) { return std::string(); },
          .why_unread = [] { return std::string(); },
          .why_not_run = [] { return std::string(Runner().status().message()); },
          .run = RunOpenCl};
}

}  // namespace

const MachineCode& OpenClC() {
  static const auto& row = *new MachineCode(Row());
  return row;
}

const MachineCode& OpenClCAsForCpu() {
  static const auto& row = *[] {
    auto* as_for_cpu = new MachineCode(Row());
    as_for_cpu->name = "opencl_as_for_cpu";
    as_for_cpu->target = SomeCpu();
    as_for_cpu->choose = ChooseAsForCpu;
    return as_for_cpu;
  }();
  return row;
}

}  // namespace kiln::numerics
