// Pools, whose memory is allocated and freed in stream order.
#include <cstring>

#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

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

}  // namespace

extern "C" {

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
    // Work pushed before can still access it, but later calls must not name it.
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
  // Freed memory is not kept in reserve.
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

}  // extern "C"

}  // namespace kiln::drivers::cuda
