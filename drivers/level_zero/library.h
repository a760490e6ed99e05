// The functions of libze_loader.so.1, looked up at run time.
#ifndef KILN_DRIVERS_LEVEL_ZERO_LIBRARY_H_
#define KILN_DRIVERS_LEVEL_ZERO_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/level_zero/api.h"

namespace kiln::drivers::level_zero {

// All functions that the driver calls, without the "ze" prefix.
#define KILN_LEVEL_ZERO_FUNCTIONS(function)       \
  function(CommandListAppendBarrier);             \
  function(CommandListAppendLaunchKernel);        \
  function(CommandListAppendMemoryCopy);          \
  function(CommandListAppendMemoryFill);          \
  function(CommandListClose);                     \
  function(CommandListCreate);                    \
  function(CommandListCreateImmediate);           \
  function(CommandListDestroy);                   \
  function(CommandListReset);                     \
  function(CommandQueueCreate);                   \
  function(CommandQueueDestroy);                  \
  function(CommandQueueExecuteCommandLists);      \
  function(ContextCreate);                        \
  function(ContextDestroy);                       \
  function(DeviceGet);                            \
  function(DeviceGetCacheProperties);             \
  function(DeviceGetCommandQueueGroupProperties); \
  function(DeviceGetComputeProperties);           \
  function(DeviceGetMemoryProperties);            \
  function(DeviceGetModuleProperties);            \
  function(DeviceGetProperties);                  \
  function(DeviceGetStatus);                      \
  function(DriverGet);                            \
  function(DriverGetApiVersion);                  \
  function(DriverGetProperties);                  \
  function(EventCreate);                          \
  function(EventDestroy);                         \
  function(EventHostReset);                       \
  function(EventHostSynchronize);                 \
  function(EventPoolCreate);                      \
  function(EventPoolDestroy);                     \
  function(EventQueryKernelTimestamp);            \
  function(FenceCreate);                          \
  function(FenceDestroy);                         \
  function(FenceHostSynchronize);                 \
  function(FenceReset);                           \
  function(Init);                                 \
  function(KernelCreate);                         \
  function(KernelDestroy);                        \
  function(KernelGetProperties);                  \
  function(KernelSetArgumentValue);               \
  function(KernelSetGroupSize);                   \
  function(KernelSetIndirectAccess);              \
  function(MemAllocDevice);                       \
  function(MemAllocHost);                         \
  function(MemFree);                              \
  function(ModuleBuildLogDestroy);                \
  function(ModuleBuildLogGetString);              \
  function(ModuleCreate);                         \
  function(ModuleDestroy);                        \
  function(ModuleGetKernelNames);                 \
  function(ModuleGetNativeBinary)

// Called as `ze.FenceReset(fence)`. All functions are thread-safe for different objects.
struct Library : FunctionTable {
  using FunctionTable::FunctionTable;
  // Opens and initialises the library. NOT_FOUND: it is missing, lacks a function, or finds no
  // driver; the message is one sentence with the remedy. After a failure none of its functions may
  // be called: without a driver the loader crashes in every call except zeInit.
  static absl::StatusOr<std::shared_ptr<const Library>> Open(const std::string& name);

// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define KILN_LEVEL_ZERO_POINTER(name) decltype(&ze##name) name = Find("ze" #name)
  KILN_LEVEL_ZERO_FUNCTIONS(KILN_LEVEL_ZERO_POINTER);
#undef KILN_LEVEL_ZERO_POINTER
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_LIBRARY_H_
