// The functions of libcuda.so.1, looked up at run time.
#ifndef KILN_DRIVERS_CUDA_LIBRARY_H_
#define KILN_DRIVERS_CUDA_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/cuda/api.h"

namespace kiln::drivers::cuda {

// All functions that the driver calls, without the "cu" prefix. The newest are from CUDA 12.0.
#define KILN_CUDA_FUNCTIONS(function)        \
  function(CtxEnablePeerAccess);             \
  function(CtxPopCurrent_v2);                \
  function(CtxPushCurrent_v2);               \
  function(DeviceCanAccessPeer);             \
  function(DeviceGet);                       \
  function(DeviceGetAttribute);              \
  function(DeviceGetCount);                  \
  function(DeviceGetName);                   \
  function(DeviceGetUuid_v2);                \
  function(DevicePrimaryCtxRelease_v2);      \
  function(DevicePrimaryCtxReset_v2);        \
  function(DevicePrimaryCtxRetain);          \
  function(DeviceTotalMem_v2);               \
  function(DriverGetVersion);                \
  function(EventCreate);                     \
  function(EventDestroy_v2);                 \
  function(EventElapsedTime);                \
  function(EventRecord);                     \
  function(EventSynchronize);                \
  function(FuncGetAttribute);                \
  function(GetErrorName);                    \
  function(GetErrorString);                  \
  function(GraphAddKernelNode_v2);           \
  function(GraphAddMemcpyNode);              \
  function(GraphAddMemsetNode);              \
  function(GraphCreate);                     \
  function(GraphDestroy);                    \
  function(GraphExecDestroy);                \
  function(GraphExecKernelNodeSetParams_v2); \
  function(GraphExecMemcpyNodeSetParams);    \
  function(GraphExecMemsetNodeSetParams);    \
  function(GraphInstantiateWithFlags);       \
  function(GraphLaunch);                     \
  function(Init);                            \
  function(LaunchKernel);                    \
  function(MemAlloc_v2);                     \
  function(MemFree_v2);                      \
  function(MemFreeHost);                     \
  function(MemHostAlloc);                    \
  function(MemcpyDtoDAsync_v2);              \
  function(MemcpyDtoHAsync_v2);              \
  function(MemcpyHtoDAsync_v2);              \
  function(MemsetD8Async);                   \
  function(ModuleGetFunction);               \
  function(ModuleLoadDataEx);                \
  function(ModuleUnload);                    \
  function(StreamCreateWithPriority);        \
  function(StreamDestroy_v2);                \
  function(StreamQuery);                     \
  function(StreamSynchronize)

// Called as `cuda.EventQuery(event)`. All functions are thread-safe.
struct Library : FunctionTable {
  using FunctionTable::FunctionTable;
  // Opens and initialises the library. NOT_FOUND: it is missing, lacks a function, is too old, or
  // has no device; the message is one sentence with the remedy.
  static absl::StatusOr<std::shared_ptr<const Library>> Open(const std::string& name);

// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define KILN_CUDA_POINTER(name) decltype(&cu##name) name = Find("cu" #name)
  KILN_CUDA_FUNCTIONS(KILN_CUDA_POINTER);
#undef KILN_CUDA_POINTER
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_LIBRARY_H_
