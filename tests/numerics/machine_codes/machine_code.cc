#include "tests/numerics/machine_codes/machine_code.h"

#include "absl/strings/str_cat.h"
#include "compiler/codegen/codegen.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/machine_codes.h"
#include "compiler/pipeline.h"
#include "tests/numerics/cases/thread_cases.h"
#include "tests/numerics/compare.h"

namespace kiln::numerics {

using ops::HostTensor;

schedule::Schedule ChooseForTarget(const kernel::Kernel& kernel, const drivers::Target& target) {
  return (*compiler::FindMachineCode(target.architecture))->choose(kernel, target);
}

absl::StatusOr<drivers::KernelImage> CompileForTarget(const kernel::Kernel& kernel,
                                                      const schedule::Schedule& schedule,
                                                      const drivers::Target& target) {
  return codegen::CompileKernel(**compiler::FindMachineCode(target.architecture), kernel, schedule,
                                target);
}

std::vector<const MachineCode*> MachineCodes() { return {&Ptx(), &Amdgcn(), &Spirv(), &OpenClC()}; }

std::vector<drivers::GridRange> PartsOf(const drivers::KernelImage& image) {
  const int64_t points = image.grid_size;
  if (!image.runs_parts || points < 2) return {{0, points}};
  return {{0, points / 2}, {points / 2, points}};
}

absl::Status CompileAndRun(const MachineCode& code, const kernel::Kernel& kernel,
                           const schedule::Schedule& schedule,
                           absl::Span<HostTensor* const> globals) {
  const auto image = code.compile(kernel, schedule, code.target);
  return image.ok() ? code.run(*image, code.target, globals) : image.status();
}

RunGraph On(const MachineCode& code) {
  return [&code](const graph::Graph& graph,
                 absl::Span<const HostTensor> inputs) -> absl::StatusOr<kernel::PartitionResults> {
    std::vector<compiler::PassReport> reports;
    const auto state = compiler::RunPasses(graph, code.target, {}, {}, &reports);
    if (!state.ok()) return state.status();
    return kernel::RunPartition(
        state->partition, inputs,
        [&code](const kernel::Kernel& kernel, absl::Span<HostTensor* const> globals) {
          return CompileAndRun(code, kernel, code.choose(kernel, code.target), globals);
        });
  };
}

absl::StatusOr<std::vector<HostTensor>> Interpreted(const kernel::Kernel& kernel) {
  std::vector<HostTensor> globals = GlobalsOf(kernel);
  std::vector<HostTensor*> pointers;
  for (HostTensor& tensor : globals) pointers.push_back(&tensor);
  if (auto status = kernel::Interpret(kernel, pointers); !status.ok()) return status;
  return globals;
}

std::string Disagreement(const MachineCode& code, const kernel::Kernel& kernel,
                         const drivers::KernelImage& image, const drivers::Target& target,
                         const std::vector<HostTensor>& interpreted, double tolerance) {
  std::vector<HostTensor> globals = GlobalsOf(kernel);
  std::vector<HostTensor*> pointers;
  for (HostTensor& tensor : globals) pointers.push_back(&tensor);
  if (auto status = code.run(image, target, pointers); !status.ok()) return status.ToString();
  for (size_t i = 0; i < globals.size(); ++i) {
    const std::string difference = Difference(globals[i], interpreted[i], tolerance, tolerance);
    if (!difference.empty()) return absl::StrCat("buffer ", i, ": ", difference);
  }
  return "";
}

std::string Disagreement(const MachineCode& code, const kernel::Kernel& kernel,
                         const drivers::KernelImage& image, const drivers::Target& target,
                         double tolerance) {
  const auto interpreted = Interpreted(kernel);
  return interpreted.ok() ? Disagreement(code, kernel, image, target, *interpreted, tolerance)
                          : interpreted.status().ToString();
}

}  // namespace kiln::numerics
