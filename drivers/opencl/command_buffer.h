// Launches that are recorded once and enqueued repeatedly by one call: OpenCL's extension
// cl_khr_command_buffer, version 0.9.0 and later.
#ifndef KILN_DRIVERS_OPENCL_COMMAND_BUFFER_H_
#define KILN_DRIVERS_OPENCL_COMMAND_BUFFER_H_

// Newer OpenCL headers declare provisional functions only with this macro.
#define CL_ENABLE_BETA_EXTENSIONS
#include <CL/cl_ext.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/opencl/handle.h"

namespace kiln::drivers::opencl {

// All functions that the driver calls, without the "cl" prefix and the "KHR" suffix.
#define KILN_OPENCL_COMMAND_BUFFER_FUNCTIONS(function) \
  function(CommandNDRangeKernel);                      \
  function(CreateCommandBuffer);                       \
  function(EnqueueCommandBuffer);                      \
  function(FinalizeCommandBuffer);                     \
  function(ReleaseCommandBuffer)

// A device's implementation of the extension. Thread-safe.
class CommandBufferExtension {
 public:
  // Called once, when recording is disabled for the device, with the reason.
  using OnBroken = std::function<void(const absl::Status& why)>;

  // Null if the device lacks the extension, or does not support in-order queues with profiling for
  // it.
  static std::unique_ptr<CommandBufferExtension> Find(const Library& cl, cl_device_id device,
                                                      OnBroken on_broken);

  // Whether a command buffer may be enqueued while it still runs.
  bool simultaneous_use() const { return simultaneous_use_; }

  // False after an unexpected error of a call.
  bool works() const { return works_; }
  void Break(const absl::Status& why);

#define KILN_OPENCL_POINTER(name) cl##name##KHR_fn name = nullptr
  KILN_OPENCL_COMMAND_BUFFER_FUNCTIONS(KILN_OPENCL_POINTER);
#undef KILN_OPENCL_POINTER

 private:
  explicit CommandBufferExtension(OnBroken on_broken) : on_broken_(std::move(on_broken)) {}

  bool simultaneous_use_ = false;
  const OnBroken on_broken_;
  std::atomic<bool> works_ = true;
};

// A kernel whose arguments no longer change, launched in one dimension.
struct RecordedLaunch {
  cl_kernel kernel;
  size_t threads;
  size_t block;
};

// Launches in order, each seeing the writes of the previous ones. Immutable. The library, the
// extension and the kernels must outlive it; it retains its queue.
class CommandBuffer {
 public:
  // Records for this queue. Kernels are recorded with their current arguments and the memory named
  // to them. RESOURCE_EXHAUSTED: too many launches, or out of memory; else INTERNAL.
  static absl::StatusOr<std::unique_ptr<CommandBuffer>> Record(
      const Library& cl, const CommandBufferExtension& extension, cl_command_queue queue,
      absl::Span<const RecordedLaunch> launches);

  // Enqueues all launches. CL_INVALID_OPERATION: it is still running, and does not support
  // simultaneous use. The event's start time is useless: PoCL and Intel's runtime set it after the
  // last launch.
  cl_int Enqueue(cl_event* event) const;

 private:
  explicit CommandBuffer(const CommandBufferExtension& extension) : extension_(extension) {}

  const CommandBufferExtension& extension_;
  Handle<cl_command_queue> queue_;
  Handle<cl_command_buffer_khr> buffer_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_COMMAND_BUFFER_H_
