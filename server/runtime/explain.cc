#include "server/runtime/explain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln::runtime {
namespace {

const char* Name(compiler::Slot::Kind kind) {
  switch (kind) {
    case compiler::Slot::Kind::kInput:
      return "input";
    case compiler::Slot::Kind::kOutput:
      return "output";
    case compiler::Slot::Kind::kUpdate:
      return "update";
    case compiler::Slot::Kind::kArena:
      return "arena";
  }
  return "?";
}

std::string ArgumentText(const compiler::CompiledProgram& program,
                         const compiler::Argument& argument) {
  const compiler::Slot& slot = program.slots[argument.slot];
  const std::string index =
      slot.kind == compiler::Slot::Kind::kArena ? "" : absl::StrCat(" ", slot.index);
  return absl::StrCat(Name(slot.kind), index, " [", argument.offset, ", ",
                      argument.offset + argument.bytes, ")");
}

}  // namespace

std::string QueueText(const compiler::CompiledProgram& program) {
  std::string text;
  int line = 0;
  for (const compiler::KernelCall& call : program.calls) {
    const auto arguments = absl::StrJoin(call.arguments, ", ",
                                         [&](std::string* out, const compiler::Argument& argument) {
                                           out->append(ArgumentText(program, argument));
                                         });
    absl::StrAppend(&text, line++, ": launch ", program.kernels[call.kernel].image.name, "(",
                    arguments, ")\n");
  }
  // Copies come after all kernels, as Program::Load records them.
  for (const compiler::CompiledProgram::Copy& copy : program.copies) {
    absl::StrAppend(&text, line++, ": copy ", ArgumentText(program, copy.source), " to ",
                    ArgumentText(program, copy.destination), "\n");
  }
  return text;
}

int KernelsFromCache(const compiler::CompiledProgram& program) {
  return static_cast<int>(
      std::count_if(program.kernels.begin(), program.kernels.end(),
                    [](const compiler::CompiledKernel& kernel) { return kernel.from_cache; }));
}

}  // namespace kiln::runtime
