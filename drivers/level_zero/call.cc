#include "drivers/level_zero/call.h"

#include "absl/strings/str_cat.h"

namespace kiln::drivers::level_zero {
namespace {

char* AddressOf(const Call::Operand& operand, const Places& places) {
  return places.addresses[operand.slot] + operand.offset;
}

// A command list keeps the arguments that a kernel had when it was appended.
ze_result_t SetArguments(const Library& ze, const Call& call, const Places& places) {
  ze_kernel_handle_t function = call.kernel->function();
  uint32_t index = 0;
  ze_result_t code = ZE_RESULT_SUCCESS;
  const bool by_table = call.kernel->image().takes_slot_table;
  if (by_table)
    code = ze.KernelSetArgumentValue(function, index++, sizeof(places.table), &places.table);
  for (const Call::Operand& operand : call.operands) {
    if (code != ZE_RESULT_SUCCESS) return code;
    const uint64_t packed = PackSlot(operand.slot, operand.offset);
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

bool Call::HasAddresses() const {
  return kind != Kind::kLaunch || !kernel->image().takes_slot_table;
}

std::string Call::WhatFailed() const {
  switch (kind) {
    case Kind::kLaunch:
      return absl::StrCat("cannot launch the kernel ", kernel->image().name);
    case Kind::kCopy:
      return absl::StrCat("cannot copy ", bytes, " bytes");
    case Kind::kFill:
      break;
  }
  return absl::StrCat("cannot fill ", bytes, " bytes");
}

ze_result_t Append(const Context& context, const Call& call, const Places& places,
                   ze_command_list_handle_t list, ze_event_handle_t signal) {
  const Library& ze = context.ze();
  switch (call.kind) {
    case Call::Kind::kLaunch: {
      const ze_result_t code = SetArguments(ze, call, places);
      if (code != ZE_RESULT_SUCCESS) return code;
      const ze_group_count_t groups = {static_cast<uint32_t>(call.points.size()), 1, 1};
      return ze.CommandListAppendLaunchKernel(list, call.kernel->function(), &groups, signal, 0,
                                              nullptr);
    }
    case Call::Kind::kCopy:
      return ze.CommandListAppendMemoryCopy(list, AddressOf(call.operands[0], places),
                                            AddressOf(call.operands[1], places), call.bytes, signal,
                                            0, nullptr);
    case Call::Kind::kFill:
      break;
  }
  return ze.CommandListAppendMemoryFill(list, AddressOf(call.operands[0], places), &call.value,
                                        sizeof(call.value), call.bytes, signal, 0, nullptr);
}

}  // namespace kiln::drivers::level_zero
