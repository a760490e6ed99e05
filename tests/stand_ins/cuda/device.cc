// The library, devices and contexts.
#include <algorithm>
#include <cstring>

#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

// Calls `body` if the device exists and the library was initialised.
template <typename Body>
CUresult OnDevice(const char* call, CUdevice device, Body body) {
  Lock lock(TheRuntime().mutex);
  if (InCallback()) return Mistake(std::string(call) + " in a callback", CUDA_ERROR_NOT_PERMITTED);
  if (!TheRuntime().initialized)
    return Mistake(std::string(call) + " before cuInit", CUDA_ERROR_NOT_INITIALIZED);
  if (device < 0 || device >= TheControl().devices)
    return Mistake(std::string(call) + ": no such device", CUDA_ERROR_INVALID_DEVICE);
  return body(lock);
}

CUresult CopyName(const std::string& name, char* to, int length) {
  if (to == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::strncpy(to, name.c_str(), length);
  to[length - 1] = '\0';
  return CUDA_SUCCESS;
}

// The values of an A100, except for its size.
bool FindAttribute(CUdevice_attribute attribute, int* value) {
  const int capability = TheControl().compute_capability;
  const std::pair<CUdevice_attribute, int> rows[] = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 64 << 10},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1410000},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, TheControl().units},
      {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
      {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
      {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0x3b},
      {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1215000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 40 << 20},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, capability / 10},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, capability % 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 164 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 64 << 10},
      {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kSharedBytesMax},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
  };
  for (const auto& [known, answer] : rows) {
    if (known != attribute) continue;
    *value = answer;
    return true;
  }
  return false;
}

// One of the devices' contexts, or null.
Context* FindContext(CUcontext handle) {
  for (Context& context : TheRuntime().contexts)
    if (reinterpret_cast<CUcontext>(&context) == handle) return &context;
  return nullptr;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
  Lock lock(TheRuntime().mutex);
  if (flags != 0) return Mistake("cuInit: flags", CUDA_ERROR_INVALID_VALUE);
  if (const int code = TheControl().init_fails) return static_cast<CUresult>(code);
  if (TheControl().devices == 0) return CUDA_ERROR_NO_DEVICE;
  TheRuntime().initialized = true;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = TheControl().driver_version;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  Lock lock(TheRuntime().mutex);
  if (!TheRuntime().initialized)
    return Mistake("cuDeviceGetCount before cuInit", CUDA_ERROR_NOT_INITIALIZED);
  *count = std::min<int>(TheControl().devices, kDevicesMax);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return OnDevice("cuDeviceGet", ordinal, [&](Lock&) {
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return OnDevice("cuDeviceGetName", device,
                  [&](Lock&) { return CopyName("stand-in GPU", name, length); });
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return OnDevice("cuDeviceGetUuid", device, [&](Lock&) {
    std::memset(uuid->bytes, 0x5a, sizeof(uuid->bytes));
    uuid->bytes[15] = static_cast<char>(device);
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return OnDevice("cuDeviceGetPCIBusId", device, [&](Lock&) {
    return CopyName("0000:0" + std::to_string(device + 1) + ":00.0", id, length);
  });
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return OnDevice("cuDeviceTotalMem", device, [&](Lock&) {
    *bytes = TheControl().memory_bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return OnDevice("cuDeviceGetAttribute", device, [&](Lock&) {
    if (value != nullptr && FindAttribute(attribute, value)) return CUDA_SUCCESS;
    return Mistake("cuDeviceGetAttribute: the attribute", CUDA_ERROR_INVALID_VALUE);
  });
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return OnDevice("cuDeviceCanAccessPeer", std::max(device, peer), [&](Lock&) {
    *can = device != peer && TheControl().peers ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
  return OnDevice("cuDevicePrimaryCtxRetain", device, [&](Lock&) {
    Context& context = TheRuntime().contexts[device];
    const int lost = TheControl().lost;
    if (lost != 0 && TheControl().lost_device == device) return static_cast<CUresult>(lost);
    context.active = true;
    ++context.retained;
    ++TheControl().objects;
    *handle = reinterpret_cast<CUcontext>(&context);
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return OnDevice("cuDevicePrimaryCtxRelease", device, [&](Lock& lock) {
    Context& context = TheRuntime().contexts[device];
    if (context.retained == 0)
      return Mistake("cuDevicePrimaryCtxRelease: not retained", CUDA_ERROR_INVALID_CONTEXT);
    --TheControl().objects;
    if (--context.retained == 0) ResetContext(context, lock);
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return OnDevice("cuDevicePrimaryCtxReset", device, [&](Lock& lock) {
    ResetContext(TheRuntime().contexts[device], lock);
    const bool lost = TheControl().lost != 0 && TheControl().lost_device == device;
    return lost ? static_cast<CUresult>(TheControl().lost.load()) : CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return OnDevice("cuDevicePrimaryCtxSetFlags", device, [&](Lock&) {
    if (flags > CU_CTX_SCHED_BLOCKING_SYNC)
      return Mistake("cuDevicePrimaryCtxSetFlags: the flags", CUDA_ERROR_INVALID_VALUE);
    TheRuntime().contexts[device].flags = flags;
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return OnDevice("cuDevicePrimaryCtxGetState", device, [&](Lock&) {
    *flags = TheRuntime().contexts[device].flags;
    *active = TheRuntime().contexts[device].active ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  Lock lock(TheRuntime().mutex);
  Context* const context = FindContext(handle);
  if (handle != nullptr && context == nullptr)
    return Mistake("cuCtxSetCurrent: no context", CUDA_ERROR_INVALID_CONTEXT);
  if (!ContextStack().empty()) ContextStack().pop_back();
  if (context != nullptr) ContextStack().push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* handle) {
  *handle = ContextStack().empty() ? nullptr : reinterpret_cast<CUcontext>(ContextStack().back());
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  Lock lock(TheRuntime().mutex);
  Context* const context = FindContext(handle);
  if (context == nullptr)
    return Mistake("cuCtxPushCurrent: no context", CUDA_ERROR_INVALID_CONTEXT);
  ContextStack().push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  Lock lock(TheRuntime().mutex);
  if (ContextStack().empty())
    return Mistake("cuCtxPopCurrent: nothing to pop", CUDA_ERROR_INVALID_CONTEXT);
  if (handle != nullptr) *handle = reinterpret_cast<CUcontext>(ContextStack().back());
  ContextStack().pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  return InContext("cuCtxSynchronize", [&](Context& context, Lock& lock) {
    WaitForAll(context, lock);
    return AnswerOf(context);
  });
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return InContext("cuCtxGetStreamPriorityRange", [&](Context&, Lock&) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  return InContext("cuCtxEnablePeerAccess", [&](Context& context, Lock&) {
    Context* const peer = FindContext(handle);
    if (peer == nullptr || peer == &context || flags != 0)
      return Mistake("cuCtxEnablePeerAccess: the context", CUDA_ERROR_INVALID_CONTEXT);
    if (!TheControl().peers) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    return context.peers.insert(peer).second ? CUDA_SUCCESS
                                             : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}
CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  return InContext("cuCtxDisablePeerAccess", [&](Context& context, Lock&) {
    return context.peers.erase(FindContext(handle)) > 0 ? CUDA_SUCCESS
                                                        : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::cuda
