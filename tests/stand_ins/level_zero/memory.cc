// Device and host memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/stand_ins/level_zero/objects.h"

namespace kiln::drivers::level_zero {
namespace {

// The part of a large allocation that is initially filled with NaNs.
constexpr size_t kFilledBytes = 1 << 20;
// An unmapped gap after every allocation.
constexpr size_t kGapBytes = 64 << 10;

ze_result_t Allocate(const char* call, ze_context_handle_t context, size_t bytes, size_t alignment,
                     int device, void** memory) {
  Runtime& runtime = TheRuntime();
  const auto found = runtime.contexts.Find(context);
  if (found == nullptr)
    return Mistake(std::string(call) + " in no context", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
  if (bytes == 0)
    return Mistake(std::string(call) + " of nothing", ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (alignment != 0 && (!std::has_single_bit(alignment) || alignment > page)) {
    return Mistake(std::string(call) + " with an alignment that is none",
                   ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
  }
  if (const ze_result_t answer = AnswerOf(*found, device); answer != ZE_RESULT_SUCCESS)
    return answer;
  int64_t used = 0;
  for (const auto& [address, allocation] : runtime.allocations)
    if (allocation.device == device) used += static_cast<int64_t>(allocation.bytes);
  const bool fits = device < 0 || used + static_cast<int64_t>(bytes) <= TheControl().memory_bytes;
  if (TheControl().out_of_memory || !fits)
    return device < 0 ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  const size_t mapped = (bytes + page - 1) / page * page + kGapBytes;
  void* const block = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  mprotect(static_cast<char*>(block) + (mapped - kGapBytes), kGapBytes, PROT_NONE);
  std::memset(block, 0xff, std::min(bytes, kFilledBytes));
  auto* const begin = static_cast<char*>(block);
  runtime.allocations[begin] = {found.get(), begin, bytes, mapped, device};
  ++TheControl().objects;
  *memory = block;
  return ZE_RESULT_SUCCESS;
}

bool Overlaps(const Allocation& allocation, const char* begin, size_t bytes) {
  return begin < allocation.memory + allocation.bytes && allocation.memory < begin + bytes;
}

// Whether lists in flight copy from or to it.
bool IsInUse(const Allocation& allocation, const List& list) {
  if (list.in_flight == 0) return false;
  return std::any_of(list.commands.begin(), list.commands.end(), [&](const Command& command) {
    return (command.to != nullptr && Overlaps(allocation, command.to, command.bytes)) ||
           (command.from != nullptr && Overlaps(allocation, command.from, command.bytes));
  });
}

}  // namespace

const Allocation* FindAllocation(const Context& context, const char* memory, size_t bytes) {
  const auto& allocations = TheRuntime().allocations;
  auto found = allocations.upper_bound(memory);
  if (found == allocations.begin()) return nullptr;
  const Allocation& allocation = (--found)->second;
  const auto offset = static_cast<size_t>(memory - allocation.memory);
  const bool inside = offset <= allocation.bytes && bytes <= allocation.bytes - offset;
  return inside && allocation.context == &context ? &allocation : nullptr;
}

extern "C" {

ze_result_t zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t* desc,
                             size_t bytes, size_t alignment, ze_device_handle_t device,
                             void** memory) {
  return Guarded("zeMemAllocDevice", [&](Lock&) {
    const int number = DeviceOf(device);
    if (number < 0 || desc == nullptr || desc->stype != ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC ||
        desc->ordinal != 0) {
      return Mistake("zeMemAllocDevice of no device, or with another structure",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if (static_cast<int64_t>(bytes) > TheControl().allocation_bytes_max)
      return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    return Allocate("zeMemAllocDevice", context, bytes, alignment, number, memory);
  });
}

ze_result_t zeMemAllocHost(ze_context_handle_t context, const ze_host_mem_alloc_desc_t* desc,
                           size_t bytes, size_t alignment, void** memory) {
  return Guarded("zeMemAllocHost", [&](Lock&) {
    if (desc == nullptr || desc->stype != ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC)
      return Mistake("zeMemAllocHost with another structure", ZE_RESULT_ERROR_INVALID_ARGUMENT);
    return Allocate("zeMemAllocHost", context, bytes, alignment, -1, memory);
  });
}

ze_result_t zeMemFree(ze_context_handle_t context, void* memory) {
  return Guarded("zeMemFree", [&](Lock&) {
    Runtime& runtime = TheRuntime();
    const auto owner = runtime.contexts.Find(context);
    const auto found = runtime.allocations.find(static_cast<char*>(memory));
    if (owner == nullptr || found == runtime.allocations.end() ||
        found->second.context != owner.get()) {
      return Mistake("zeMemFree of what is not this context's", ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    bool in_use = false;
    runtime.lists.ForEach([&](const List& list) { in_use |= IsInUse(found->second, list); });
    if (in_use) {
      return Mistake("zeMemFree of memory that a list on its way copies",
                     ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    }
    munmap(found->second.memory, found->second.mapped);
    runtime.allocations.erase(found);
    --TheControl().objects;
    return ZE_RESULT_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::level_zero
