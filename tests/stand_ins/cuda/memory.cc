// Device memory, pinned memory and pools.
#include <cstring>

#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

constexpr CUdeviceptr kAddressAlignment = 512;
// Fresh memory up to this size is full of NaNs. More would only take time.
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

std::shared_ptr<Pool> FindPool(CUmemoryPool handle) {
  for (int i = 0; i < kDevicesMax; ++i) {
    const std::shared_ptr<Pool>& pool = TheRuntime().default_pools[i];
    if (reinterpret_cast<CUmemoryPool>(pool.get()) == handle) return pool;
  }
  return TheRuntime().pools.Find(handle);
}

CUresult AllocateInOrder(const char* call, Context& context, CUdeviceptr* address, size_t bytes,
                         std::shared_ptr<Pool> pool, CUstream handle) {
  const std::shared_ptr<Stream> stream = FindStream(context, handle);
  if (stream == nullptr)
    return Mistake(std::string(call) + ": no stream", CUDA_ERROR_INVALID_HANDLE);
  Allocation* made = nullptr;
  const int device = pool->device;
  const CUresult result = Allocate(device, &context, bytes, false, std::move(pool), &made);
  if (result != CUDA_SUCCESS) return result;
  *address = made->address;
  Push(*stream, [address = made->address] {
    Lock lock(TheRuntime().mutex);
    Allocation* const found = FindAllocation(address);
    if (found != nullptr) found->live = true;
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

// The allocation that begins there, if a call may free it.
Allocation* FindWhole(CUdeviceptr address) {
  const auto found = TheRuntime().allocations.find(address);
  if (found == TheRuntime().allocations.end()) return nullptr;
  Allocation& allocation = found->second;
  return allocation.freed || allocation.device < 0 ? nullptr : &allocation;
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
  // A gap after each, so that what runs past an end is found; addresses are never used again.
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
// Waits for what may use it, as the real one does.
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
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return InContext("cuMemAllocAsync", [&](Context& context, Lock&) {
    return AllocateInOrder("cuMemAllocAsync", context, address, bytes,
                           TheRuntime().default_pools[context.device], stream);
  });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return InContext("cuMemAllocFromPoolAsync", [&](Context& context, Lock&) {
    std::shared_ptr<Pool> found = FindPool(pool);
    if (found == nullptr)
      return Mistake("cuMemAllocFromPoolAsync: no pool", CUDA_ERROR_INVALID_HANDLE);
    return AllocateInOrder("cuMemAllocFromPoolAsync", context, address, bytes, std::move(found),
                           stream);
  });
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return InContext("cuMemFreeAsync", [&](Context& context, Lock&) {
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    if (stream == nullptr) return Mistake("cuMemFreeAsync: no stream", CUDA_ERROR_INVALID_HANDLE);
    Allocation* const allocation = FindWhole(address);
    if (allocation == nullptr)
      return Mistake("cuMemFreeAsync: no allocation begins there", CUDA_ERROR_INVALID_VALUE);
    Push(*stream, [address] {
      Lock lock(TheRuntime().mutex);
      Free(address);
      return CUDA_SUCCESS;
    });
    // It stays readable for what was pushed before, and no later call may name it.
    allocation->freed = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  Lock lock(TheRuntime().mutex);
  if (device < 0 || device >= TheControl().devices)
    return Mistake("cuDeviceGetDefaultMemPool: no such device", CUDA_ERROR_INVALID_DEVICE);
  *pool = reinterpret_cast<CUmemoryPool>(TheRuntime().default_pools[device].get());
  return CUDA_SUCCESS;
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  Lock lock(TheRuntime().mutex);
  const bool known = properties != nullptr &&
                     properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                     properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                     properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     properties->location.id >= 0 && properties->location.id < TheControl().devices;
  if (!known) return Mistake("cuMemPoolCreate: the properties", CUDA_ERROR_INVALID_VALUE);
  auto made = std::make_shared<Pool>(Pool{.device = properties->location.id});
  *pool = TheRuntime().pools.Add(std::move(made));
  return CUDA_SUCCESS;
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  Lock lock(TheRuntime().mutex);
  if (!TheRuntime().pools.Remove(pool))
    return Mistake("cuMemPoolDestroy: no pool", CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  Lock lock(TheRuntime().mutex);
  if (FindPool(pool) == nullptr)
    return Mistake("cuMemPoolTrimTo: no pool", CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Lock lock(TheRuntime().mutex);
  const std::shared_ptr<Pool> found = FindPool(pool);
  if (found == nullptr || value == nullptr)
    return Mistake("cuMemPoolSetAttribute: no pool", CUDA_ERROR_INVALID_HANDLE);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      std::memcpy(&found->release_threshold, value, sizeof(uint64_t));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      found->used_high = found->used;
      return CUDA_SUCCESS;
    default:
      return Mistake("cuMemPoolSetAttribute: the attribute", CUDA_ERROR_INVALID_VALUE);
  }
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Lock lock(TheRuntime().mutex);
  const std::shared_ptr<Pool> found = FindPool(pool);
  if (found == nullptr || value == nullptr || attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    return Mistake("cuMemPoolGetAttribute: the pool or attribute", CUDA_ERROR_INVALID_VALUE);
  // Nothing is kept in reserve: what is freed is gone.
  const bool high =
      attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  const uint64_t answer = attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? found->release_threshold
                          : high                                         ? found->used_high
                                                                         : found->used;
  std::memcpy(value, &answer, sizeof(answer));
  return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
  Lock lock(TheRuntime().mutex);
  const std::shared_ptr<Pool> found = FindPool(pool);
  if (found == nullptr) return Mistake("cuMemPoolSetAccess: no pool", CUDA_ERROR_INVALID_HANDLE);
  for (size_t i = 0; i < count; ++i) {
    if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      found->access.erase(access[i].location.id);
    } else {
      found->access.insert(access[i].location.id);
    }
  }
  return CUDA_SUCCESS;
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
