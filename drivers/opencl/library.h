// The functions of libOpenCL.so.1, looked up at run time.
#ifndef KILN_DRIVERS_OPENCL_LIBRARY_H_
#define KILN_DRIVERS_OPENCL_LIBRARY_H_

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/common/dynamic_library.h"

namespace kiln::drivers::opencl {

// All functions that the driver calls, without the "cl" prefix. None is newer than OpenCL 2.0.
#define KILN_OPENCL_FUNCTIONS(function)             \
  function(BuildProgram);                           \
  function(CreateCommandQueueWithProperties);       \
  function(CreateContext);                          \
  function(CreateKernel);                           \
  function(CreateProgramWithBinary);                \
  function(CreateProgramWithSource);                \
  function(EnqueueMarkerWithWaitList);              \
  function(EnqueueNDRangeKernel);                   \
  function(EnqueueSVMMemFill);                      \
  function(EnqueueSVMMemcpy);                       \
  function(Finish);                                 \
  function(Flush);                                  \
  function(GetDeviceIDs);                           \
  function(GetDeviceInfo);                          \
  function(GetEventInfo);                           \
  function(GetEventProfilingInfo);                  \
  function(GetExtensionFunctionAddressForPlatform); \
  function(GetKernelInfo);                          \
  function(GetKernelWorkGroupInfo);                 \
  function(GetPlatformIDs);                         \
  function(GetPlatformInfo);                        \
  function(GetProgramBuildInfo);                    \
  function(GetProgramInfo);                         \
  function(ReleaseCommandQueue);                    \
  function(ReleaseContext);                         \
  function(ReleaseEvent);                           \
  function(ReleaseKernel);                          \
  function(ReleaseProgram);                         \
  function(RetainCommandQueue);                     \
  function(RetainEvent);                            \
  function(SVMAlloc);                               \
  function(SVMFree);                                \
  function(SetKernelArg);                           \
  function(SetKernelArgSVMPointer);                 \
  function(SetKernelExecInfo);                      \
  function(WaitForEvents)

// Called as `cl.Finish(queue)`. The functions are as thread-safe as OpenCL says: all except those
// that modify a kernel object.
struct Library : FunctionTable {
  using FunctionTable::FunctionTable;
  // NOT_FOUND: the library is missing or lacks a function.
  static absl::StatusOr<std::shared_ptr<const Library>> Open(const std::string& name);

#define KILN_OPENCL_POINTER(name) decltype(&::cl##name) name = Find("cl" #name)
  KILN_OPENCL_FUNCTIONS(KILN_OPENCL_POINTER);
#undef KILN_OPENCL_POINTER
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_LIBRARY_H_
