#include "drivers/level_zero/call.h"

namespace kiln::drivers::level_zero {
namespace {

char* AddressOf(const RangeAccess& operand, const Places& places) {
  return places.addresses[operand.range.slot] + operand.range.offset;
}

ze_kernel_handle_t FunctionOf(const Call& call) {
  return static_cast<const LevelZeroKernel*>(call.kernel)->function();
}

// A command list keeps the arguments that a kernel had when it was appended.
ze_result_t SetArguments(const Library& ze, const Call& call, const Places& places) {
  ze_kernel_handle_t function = FunctionOf(call);
  uint32_t index = 0;
  ze_result_t code = ZE_RESULT_SUCCESS;
  const bool by_table = call.kernel->image().takes_slot_table;
  if (by_table)
    code = ze.KernelSetArgumentValue(function, index++, sizeof(places.table), &places.table);
  for (const RangeAccess& operand : call.operands) {
    if (code != ZE_RESULT_SUCCESS) return code;
    const uint64_t packed = PackSlot(operand.range.slot, operand.range.offset);
    void* const address = by_table ? nullptr : AddressOf(operand, places);
    code = by_table ? ze.KernelSetArgumentValue(function, index++, sizeof(packed), &packed)
                    : ze.KernelSetArgumentValue(function, index++, sizeof(address), &address);
  }
  const auto first = static_cast<uint64_t>(call.points.begin);
  if (code == ZE_RESULT_SUCCESS && call.kernel->image().runs_parts)
    code = ze.KernelSetArgumentValue(function, index, sizeof(first), &first);
  return code;
}

}  // namespace

ze_result_t Append(const Context& context, const Call& call, const Places& places,
                   ze_command_list_handle_t list, ze_event_handle_t signal) {
  const Library& ze = context.ze();
  switch (call.kind) {
    case Call::Kind::kLaunch: {
      const ze_result_t code = SetArguments(ze, call, places);
      if (code != ZE_RESULT_SUCCESS) return code;
      const ze_group_count_t groups = {static_cast<uint32_t>(call.points.size()), 1, 1};
      return ze.CommandListAppendLaunchKernel(list, FunctionOf(call), &groups, signal, 0, nullptr);
    }
    case Call::Kind::kCopy:
      return ze.CommandListAppendMemoryCopy(list, AddressOf(call.operands[0], places),
                                            AddressOf(call.operands[1], places), call.bytes(),
                                            signal, 0, nullptr);
    case Call::Kind::kFill:
      break;
  }
  return ze.CommandListAppendMemoryFill(list, AddressOf(call.operands[0], places), &call.value,
                                        sizeof(call.value), call.bytes(), signal, 0, nullptr);
}

}  // namespace kiln::drivers::level_zero
