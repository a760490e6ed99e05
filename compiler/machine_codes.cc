#include "compiler/machine_codes.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/amdgcn/amdgcn.h"
#include "compiler/codegen/amdgcn/kernel.h"
#include "compiler/codegen/nvptx/kernel.h"
#include "compiler/codegen/nvptx/ptx.h"
#include "compiler/codegen/opencl_c/kernel.h"
#include "compiler/codegen/spirv/kernel.h"
#include "compiler/codegen/spirv/spirv.h"
#include "compiler/codegen/x86/kernel.h"
#include "compiler/codegen/x86/x86.h"
#include "compiler/search/heuristics/heuristic.h"
#include "compiler/search/heuristics/thread_chooser.h"
#include "compiler/search/space.h"

namespace kiln::compiler {
namespace {

using codegen::Code;
using codegen::MachineCode;

template <search::Machine machine>
absl::StatusOr<schedule::Schedule> ChooseBy(const kernel::Kernel& kernel,
                                            const drivers::Target& target, std::string_view setting,
                                            std::vector<std::string>* ignored) {
  return search::WriteStored(kernel, target, machine, setting, ignored);
}
constexpr auto kByLanes = ChooseBy<search::Machine::kLanes>;
constexpr auto kByThreads = ChooseBy<search::Machine::kThreads>;

// For devices that execute nothing: everything except machine code is made.
constexpr MachineCode kNothing = {
    .architecture = "null",
    .supports = [](const ir::Node*, const drivers::Target&) { return true; },
    .choose = search::Choose,
    .choose_by = kByLanes,
    .assemble = [](const kernel::Kernel&, const schedule::LoopProgram&,
                   const drivers::Target&) -> absl::StatusOr<Code> { return Code(); },
    .disassemble = [](const drivers::KernelImage&,
                      const drivers::Target&) -> absl::StatusOr<std::string> { return ""; },
};

constexpr MachineCode kMachineCodes[] = {
    {.architecture = codegen::kX86Architecture,
     .supports = codegen::IsX86Supported,
     .choose = search::Choose,
     .choose_by = kByLanes,
     .assemble = codegen::AssembleX86,
     .disassemble = codegen::DisassembleX86},
    {.architecture = codegen::kOpenClArchitecture,
     .supports = codegen::IsOpenClSupported,
     .choose = search::ChooseThreads,
     .choose_by = kByThreads,
     .assemble = codegen::AssembleOpenCl,
     .disassemble = codegen::DisassembleOpenCl},
    {.architecture = codegen::kPtxArchitecture,
     .supports = codegen::IsPtxSupported,
     .choose = search::ChooseThreads,
     .choose_by = kByThreads,
     .assemble = codegen::AssemblePtx,
     .disassemble = codegen::DisassemblePtx},
    {.architecture = codegen::kAmdgcnArchitecture,
     .supports = codegen::IsAmdgcnSupported,
     .choose = search::ChooseThreads,
     .choose_by = kByThreads,
     .assemble = codegen::AssembleAmdgcn,
     .disassemble = codegen::DisassembleAmdgcn},
    {.architecture = codegen::kSpirvArchitecture,
     .supports = codegen::IsSpirvSupported,
     .choose = search::ChooseThreads,
     .choose_by = kByThreads,
     .assemble = codegen::AssembleSpirv,
     .disassemble = codegen::DisassembleSpirv},
    kNothing,
};

}  // namespace

absl::Span<const MachineCode> MachineCodes() { return kMachineCodes; }

absl::StatusOr<const MachineCode*> FindMachineCode(std::string_view architecture) {
  for (const MachineCode& machine : kMachineCodes) {
    if (machine.architecture == architecture) return &machine;
  }
  const std::string names = absl::StrJoin(
      kMachineCodes, ", ",
      [](std::string* out, const MachineCode& machine) { out->append(machine.architecture); });
  return absl::UnimplementedError(absl::StrCat("no code generator for the architecture \"",
                                               std::string(architecture), "\"; use one of ",
                                               names));
}

}  // namespace kiln::compiler
