#include "server/runtime/program/explain.h"

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
    case compiler::Slot::Kind::kPlace:
      return "place";
    case compiler::Slot::Kind::kPublished:
      return "published";
  }
  return "?";
}

std::string ArgumentText(const compiler::CompiledProgram& program,
                         const compiler::Argument& argument) {
  const compiler::Slot& slot = program.slots[argument.slot];
  const bool is_numbered = slot.kind == compiler::Slot::Kind::kInput ||
                           slot.kind == compiler::Slot::Kind::kOutput ||
                           slot.kind == compiler::Slot::Kind::kUpdate;
  const std::string index = is_numbered ? absl::StrCat(" ", slot.index) : "";
  // Names another device's memory, and how its offset depends on the number in the group.
  const std::string member =
      argument.member < 0 ? "" : absl::StrCat(" of device ", argument.member, " in its group");
  const std::string stride =
      argument.stride == 0 ? "" : absl::StrCat(" + ", argument.stride, " * own number");
  return absl::StrCat(Name(slot.kind), index, member, " [", argument.offset, ", ",
                      argument.offset + argument.bytes, ")", stride);
}

// Returns the bytes that a device reads of its group between this exchange and the group's next.
// Includes its own part if the range contains it.
int64_t ReadBytes(const compiler::CompiledProgram& program, size_t exchange) {
  const int group = program.exchanges[exchange].group;
  size_t end = program.calls.size();
  for (size_t i = exchange + 1; i < program.exchanges.size() && end == program.calls.size(); ++i)
    if (program.exchanges[i].group == group) end = program.exchanges[i].before_call;
  int64_t bytes = 0;
  for (size_t i = program.exchanges[exchange].before_call; i < end; ++i) {
    for (const compiler::Argument& argument : program.calls[i].arguments)
      if (argument.member >= 0 && argument.group == group) bytes += argument.bytes;
  }
  return bytes;
}

std::string ExchangeText(const compiler::CompiledProgram& program, size_t exchange) {
  const compiler::DeviceGroup& group = program.groups[program.exchanges[exchange].group];
  return absl::StrCat("exchange along mesh axes ", absl::StrJoin(group.mesh_axes, ", "),
                      ", then each device reads ", ReadBytes(program, exchange), " bytes\n");
}

}  // namespace

std::string QueueText(const compiler::CompiledProgram& program) {
  std::string text;
  int line = 0;
  size_t exchange = 0;
  const auto add_exchanges = [&](size_t before_call) {
    while (exchange < program.exchanges.size() &&
           static_cast<size_t>(program.exchanges[exchange].before_call) <= before_call)
      absl::StrAppend(&text, line++, ": ", ExchangeText(program, exchange++));
  };
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const compiler::KernelCall& call = program.calls[i];
    add_exchanges(i);
    const auto arguments = absl::StrJoin(call.arguments, ", ",
                                         [&](std::string* out, const compiler::Argument& argument) {
                                           out->append(ArgumentText(program, argument));
                                         });
    absl::StrAppend(&text, line++, ": launch ", program.kernels[call.kernel].image.name, "(",
                    arguments, ")\n");
  }
  add_exchanges(program.calls.size());
  // Copies follow all kernels, as RecordList writes them.
  for (const compiler::CompiledProgram::Copy& copy : program.copies) {
    absl::StrAppend(&text, line++, ": copy ", ArgumentText(program, copy.source), " to ",
                    ArgumentText(program, copy.destination), "\n");
  }
  return text;
}

std::string QueueText(const Program& program) {
  const std::vector<int> distinct = program.sharded().distinct();
  std::string text;
  for (const int member : distinct) {
    if (distinct.size() > 1)
      absl::StrAppend(&text, "on ", program.sharded().device(member).name(), "\n");
    absl::StrAppend(&text, QueueText(program.sharded().compiled(member)));
  }
  const Signature& signature = program.signature();
  const size_t outputs = signature.outputs.size();
  const auto name = [outputs](size_t result) {
    return result < outputs ? absl::StrCat("output ", result)
                            : absl::StrCat("update ", result - outputs);
  };
  for (size_t i = 0; i < outputs + signature.updates.size(); ++i) {
    if (program.same_result(i) != i)
      absl::StrAppend(&text, name(i), " is ", name(program.same_result(i)), "\n");
  }
  return text;
}

int KernelsFromCache(const compiler::CompiledProgram& program) {
  return static_cast<int>(
      std::count_if(program.kernels.begin(), program.kernels.end(),
                    [](const compiler::CompiledKernel& kernel) { return kernel.from_cache; }));
}

}  // namespace kiln::runtime
