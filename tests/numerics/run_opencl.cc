#include "tests/numerics/run_opencl.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/opencl_kernel.h"
#include "compiler/machine_codes.h"
#include "compiler/pipeline.h"
#include "compiler/proof/prove.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/synchronize.h"
#include "compiler/search/heuristic.h"
#include "tests/numerics/some_gpu.h"
#include "tests/opencl_platform.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;

const codegen::MachineCode& OpenClCode() {
  return **compiler::FindMachineCode(codegen::kOpenClArchitecture);
}

// Some CPU, the same on every machine.
const drivers::Target& SomeTarget() {
  static const drivers::Target* const target = [] {
    auto* some = new drivers::Target;
    some->architecture = "x86-64";
    some->limits.vector_bytes = 32;
    some->limits.compute_units = 2;
    return some;
  }();
  return *target;
}

absl::Status RunKernel(const kernel::Kernel& kernel, Scheduled scheduled,
                       absl::Span<HostTensor* const> globals) {
  if (scheduled == Scheduled::kAsForCpu) {
    const absl::Status status = RunOnOpenCl(kernel, search::Choose(kernel, SomeTarget()), globals);
    if (!absl::IsUnimplemented(status)) return status;
  }
  return RunOnOpenCl(kernel, OpenClCode().choose(kernel, SomeGpu()), globals);
}

}  // namespace

const absl::StatusOr<std::unique_ptr<codegen::OpenClRunner>>& OpenCl() {
  static const auto& runner = *new absl::StatusOr<std::unique_ptr<codegen::OpenClRunner>>(
      codegen::OpenClRunner::Open(OpenClPlatformToTest()));
  return runner;
}

absl::Status RunOnOpenCl(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                         absl::Span<HostTensor* const> globals) {
  if (!OpenCl().ok()) return OpenCl().status();
  codegen::OpenClRunner& runner = **OpenCl();
  drivers::Target target;
  target.architecture = codegen::kOpenClArchitecture;
  target.capabilities.fp64 = runner.HasFloat64();
  absl::Status supported = codegen::CheckSupported(OpenClCode(), kernel, target);
  if (!supported.ok()) return supported;
  const auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status();
  supported = codegen::CheckOpenClSupported(*program);
  if (!supported.ok()) return supported;
  if (auto proved = proof::Prove(kernel, schedule, *program); !proved.ok()) return proved;
  std::vector<std::vector<uint8_t>*> arguments;
  for (HostTensor* global : globals) arguments.push_back(&global->bytes);
  return runner.Run(codegen::PrintSource(schedule::Synchronize(*program)), program->grid_size(),
                    program->threads, arguments);
}

absl::StatusOr<kernel::PartitionResults> RunOnOpenCl(const graph::Graph& graph,
                                                     absl::Span<const HostTensor> inputs,
                                                     Scheduled scheduled) {
  std::vector<compiler::PassReport> reports;
  const drivers::Target& target = scheduled == Scheduled::kThreads ? SomeGpu() : SomeTarget();
  const auto state = compiler::RunPasses(graph, target, {}, {}, &reports);
  if (!state.ok()) return state.status();
  return kernel::RunPartition(
      state->partition, inputs,
      [scheduled](const kernel::Kernel& kernel, absl::Span<HostTensor* const> globals) {
        return RunKernel(kernel, scheduled, globals);
      });
}

}  // namespace kiln::numerics
