// Device memory and pinned memory.
#include <cstring>

#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

constexpr CUdeviceptr kAddressAlignment = 512;
// New memory up to this size is filled with NaNs. More would only take time.
constexpr size_t kPoisonedBytesMax = size_t{64} << 20;

size_t UsedBytes(int device) {
  size_t used = 0;
  for (const auto& [address, allocation] : TheRuntime().allocations)
    if (allocation.device == device) used += allocation.bytes;
  return used;
}

std::shared_ptr<uint8_t[]> MakeStorage(size_t bytes) {
  std::shared_ptr<uint8_t[]> storage(
      static_cast<uint8_t*>(std::aligned_alloc(
          kAddressAlignment,
          (bytes + kAddressAlignment - 1) / kAddressAlignment * kAddressAlignment)),
      [](uint8_t* memory) { std::free(memory); });
  if (storage != nullptr && bytes <= kPoisonedBytesMax) std::memset(storage.get(), 0xff, bytes);
  return storage;
}

CUresult AddPinned(Context& context, void* address, size_t bytes,
                   std::shared_ptr<uint8_t[]> storage) {
  const auto key = reinterpret_cast<CUdeviceptr>(address);
  TheRuntime().allocations[key] = {.address = key,
                                   .bytes = bytes,
                                   .storage = std::move(storage),
                                   .host = static_cast<uint8_t*>(address),
                                   .device = -1,
                                   .context = &context};
  ++TheControl().objects;
  return CUDA_SUCCESS;
}

CUresult RemovePinned(const char* call, void* address, bool registered) {
  const auto found = TheRuntime().allocations.find(reinterpret_cast<CUdeviceptr>(address));
  const bool mine = found != TheRuntime().allocations.end() && found->second.device < 0 &&
                    (found->second.storage == nullptr) == registered;
  if (!mine) return Mistake(std::string(call) + ": no such memory", CUDA_ERROR_INVALID_VALUE);
  Free(found->first);
  return CUDA_SUCCESS;
}

}  // namespace

Allocation* FindWhole(CUdeviceptr address) {
  const auto found = TheRuntime().allocations.find(address);
  if (found == TheRuntime().allocations.end()) return nullptr;
  Allocation& allocation = found->second;
  return allocation.freed || allocation.device < 0 ? nullptr : &allocation;
}

Allocation* FindAllocation(CUdeviceptr address) {
  auto& allocations = TheRuntime().allocations;
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return nullptr;
  Allocation& allocation = (--after)->second;
  return address - allocation.address < allocation.bytes ? &allocation : nullptr;
}

bool IsDeviceMemory(CUdeviceptr address, size_t bytes) {
  const Allocation* const allocation = FindAllocation(address);
  return allocation != nullptr && !allocation->freed &&
         allocation->bytes - (address - allocation->address) >= bytes;
}

CUresult Allocate(int device, Context* context, size_t bytes, bool live, std::shared_ptr<Pool> pool,
                  Allocation** made) {
  if (bytes == 0) return Mistake("an allocation of no bytes", CUDA_ERROR_INVALID_VALUE);
  const size_t total = TheControl().memory_bytes;
  if (TheControl().out_of_memory || bytes > total || UsedBytes(device) > total - bytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::shared_ptr<uint8_t[]> storage = MakeStorage(bytes);
  if (storage == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Runtime& runtime = TheRuntime();
  const CUdeviceptr address = runtime.next_address[device];
  // Leaves a gap after each allocation, so that overruns are found; addresses are never reused.
  runtime.next_address[device] +=
      (bytes + 2 * kAddressAlignment - 1) / kAddressAlignment * kAddressAlignment;
  uint8_t* const host = storage.get();
  if (pool != nullptr) {
    pool->used += bytes;
    pool->used_high = std::max(pool->used_high, pool->used);
  }
  *made = &(runtime.allocations[address] = {address, bytes, std::move(storage), host, device, live,
                                            false, context, std::move(pool)});
  ++TheControl().allocations;
  ++TheControl().objects;
  return CUDA_SUCCESS;
}

void Free(CUdeviceptr address) {
  const auto found = TheRuntime().allocations.find(address);
  if (found == TheRuntime().allocations.end()) return;
  if (found->second.pool != nullptr) found->second.pool->used -= found->second.bytes;
  TheRuntime().allocations.erase(found);
  --TheControl().objects;
}

std::shared_ptr<const MemorySnapshot> TakeSnapshot(const Context& context) {
  auto snapshot = std::make_shared<MemorySnapshot>();
  std::vector<ptx::Region> regions;
  for (const auto& [address, allocation] : TheRuntime().allocations) {
    if (!allocation.live) continue;
    const auto reaches = [&](const Context* peer) { return peer->device == allocation.device; };
    const bool peer = std::any_of(context.peers.begin(), context.peers.end(), reaches);
    const bool pooled = allocation.pool != nullptr;
    const bool granted = pooled && allocation.pool->access.count(context.device) > 0;
    if (allocation.device >= 0 && allocation.device != context.device && !(pooled ? granted : peer))
      continue;
    regions.push_back({address, allocation.bytes, allocation.host});
    snapshot->storage.push_back(allocation.storage);
  }
  snapshot->memory = ptx::GlobalMemory(std::move(regions));
  return snapshot;
}

extern "C" {

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return InContext("cuMemGetInfo", [&](Context& context, Lock&) {
    *total_bytes = TheControl().memory_bytes;
    *free_bytes = *total_bytes - std::min(*total_bytes, UsedBytes(context.device));
    return CUDA_SUCCESS;
  });
}
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return InContext("cuMemAlloc", [&](Context& context, Lock&) {
    Allocation* made = nullptr;
    const CUresult result = Allocate(context.device, &context, bytes, true, nullptr, &made);
    if (result == CUDA_SUCCESS) *address = made->address;
    return result;
  });
}
// Waits for work that may use it, as the real one does.
CUresult cuMemFree_v2(CUdeviceptr address) {
  return InContext("cuMemFree", [&](Context& context, Lock& lock) {
    if (address == 0) return CUDA_SUCCESS;
    if (FindWhole(address) == nullptr)
      return Mistake("cuMemFree: no allocation begins there", CUDA_ERROR_INVALID_VALUE);
    WaitForAll(context, lock);
    Free(address);
    return AnswerOf(context);
  });
}
CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  return InContext("cuMemHostAlloc", [&](Context& context, Lock&) {
    if (bytes == 0 || flags > 7) return Mistake("cuMemHostAlloc", CUDA_ERROR_INVALID_VALUE);
    if (TheControl().out_of_memory) return CUDA_ERROR_OUT_OF_MEMORY;
    std::shared_ptr<uint8_t[]> storage = MakeStorage(bytes);
    if (storage == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = storage.get();
    return AddPinned(context, *address, bytes, std::move(storage));
  });
}
CUresult cuMemFreeHost(void* address) {
  return InContext("cuMemFreeHost", [&](Context& context, Lock& lock) {
    WaitForAll(context, lock);
    return RemovePinned("cuMemFreeHost", address, false);
  });
}
CUresult cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  return InContext("cuMemHostRegister", [&](Context& context, Lock&) {
    if (address == nullptr || bytes == 0 || flags > 15)
      return Mistake("cuMemHostRegister", CUDA_ERROR_INVALID_VALUE);
    const auto key = reinterpret_cast<CUdeviceptr>(address);
    if (FindAllocation(key) != nullptr || FindAllocation(key + bytes - 1) != nullptr)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return AddPinned(context, address, bytes, nullptr);
  });
}
CUresult cuMemHostUnregister(void* address) {
  return InContext("cuMemHostUnregister", [&](Context& context, Lock& lock) {
    WaitForAll(context, lock);
    return RemovePinned("cuMemHostUnregister", address, true);
  });
}

}  // extern "C"

}  // namespace kiln::drivers::cuda
