// Execution of commands.
#include <algorithm>
#include <cstring>
#include <random>

#include "drivers/interface/kernel_image.h"
#include "tests/stand_ins/level_zero/objects.h"

namespace kiln::drivers::level_zero {
namespace {

uint64_t Now() { return static_cast<uint64_t>(TheControl().time.Nanoseconds()); }

// For Control::host_kernels.
std::string RunOnHost(const Command& launch) {
  const auto value_of = [](const stand_ins::level_zero::OpenClArgument& argument) {
    uint64_t value = 0;
    std::memcpy(&value, argument.bytes.data(), std::min(argument.bytes.size(), sizeof(value)));
    return value;
  };
  if (launch.arguments.empty()) return "";
  uint64_t at = value_of(launch.arguments.back());
  if (!launch.arguments.back().is_pointer) {
    const uint64_t slot = at >> kSlotOffsetBits;
    uint64_t base = 0;
    // NOLINTBEGIN(performance-no-int-to-ptr): addresses, as kernels have them.
    std::memcpy(&base,
                reinterpret_cast<const char*>(value_of(launch.arguments[0])) + slot * sizeof(base),
                sizeof(base));
    at = base + (at & kSlotOffsetMask);
  }
  ++*reinterpret_cast<uint32_t*>(at);
  // NOLINTEND(performance-no-int-to-ptr)
  return "";
}

ze_result_t Run(const Command& command) {
  Control& control = TheControl();
  switch (command.kind) {
    case Command::Kind::kBarrier:
      return ZE_RESULT_SUCCESS;
    case Command::Kind::kCopy: {
      std::memcpy(command.to, command.from, command.bytes);
      ++control.copies_run;
      control.time.HasCopied();
      return ZE_RESULT_SUCCESS;
    }
    case Command::Kind::kFill:
      control.launch_gate.Pass();
      for (size_t i = 0; i < command.bytes; ++i)
        command.to[i] = static_cast<char>(command.pattern[i % command.pattern.size()]);
      ++control.fills_run;
      control.time.HasCopied();
      return ZE_RESULT_SUCCESS;
    case Command::Kind::kLaunch:
      break;
  }
  control.launch_gate.Pass();
  OpenClProgram* const program = command.kernel->module->program.get();
  const std::string why = program == nullptr
                              ? RunOnHost(command)
                              : program->Run(command.kernel->entry->name, command.arguments,
                                             command.groups, command.group_size);
  ++control.kernels_run;
  control.time.HasLaunched();
  if (why.empty()) return ZE_RESULT_SUCCESS;
  Report(why);
  return ZE_RESULT_ERROR_UNKNOWN;
}

// Whether the memory of a command still exists. Requires the lock.
bool IsThere(const Context& context, const Command& command) {
  for (const char* memory : {static_cast<const char*>(command.to), command.from})
    if (memory != nullptr && FindAllocation(context, memory, command.bytes) == nullptr)
      return false;
  return command.kernel == nullptr || !command.kernel->destroyed;
}

}  // namespace

Ran RunCommand(Context& context, int device, const Command& command) {
  Ran ran = {.begin = Now()};
  {
    const Lock lock(TheRuntime().mutex);
    ran.result = AnswerOf(context, device);
    if (ran.result == ZE_RESULT_SUCCESS && !IsThere(context, command)) {
      ran.result = Mistake("a list that runs after what it uses has gone", ZE_RESULT_ERROR_UNKNOWN);
    }
  }
  if (ran.result == ZE_RESULT_SUCCESS) {
    ran.result = Run(command);
    if (command.kind == Command::Kind::kLaunch) TheControl().HasRunOn(device);
  }
  ran.end = Now();
  return ran;
}

void Signal(const Command& command, const Ran& ran) {
  if (command.signal == nullptr) return;
  Event& event = *command.signal;
  if (event.signalled) Mistake("an event is signalled that was not reset", ZE_RESULT_ERROR_UNKNOWN);
  event.signalled = true;
  event.result = ran.result;
  event.begin = ran.begin;
  event.end = ran.end;
  TheRuntime().changed.notify_all();
}

ze_result_t RunList(Context& context, const List& list, uint64_t seed) {
  std::mt19937_64 random(seed);
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (size_t begin = 0; begin < list.commands.size();) {
    // Up to the next barrier, which waits for all of them.
    size_t end = begin;
    while (end < list.commands.size() && list.commands[end].kind != Command::Kind::kBarrier) ++end;
    std::vector<size_t> order;
    for (size_t i = begin; i < end; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    if (end < list.commands.size()) order.push_back(end);
    for (const size_t i : order) {
      const Ran ran = RunCommand(context, list.device, list.commands[i]);
      if (result == ZE_RESULT_SUCCESS) result = ran.result;
      const Lock lock(TheRuntime().mutex);
      Signal(list.commands[i], ran);
    }
    begin = end + 1;
  }
  return result;
}

}  // namespace kiln::drivers::level_zero
