// Launches that are recorded once and enqueued by one call, again and again: OpenCL's extension
// cl_khr_command_buffer, from its version 0.9.0.
#ifndef KILN_DRIVERS_OPENCL_COMMAND_BUFFER_H_
#define KILN_DRIVERS_OPENCL_COMMAND_BUFFER_H_

// Newer headers of OpenCL declare what is provisional only when asked to.
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

// All that the driver calls of it, without the "cl" and the "KHR".
#define KILN_OPENCL_COMMAND_BUFFER_FUNCTIONS(function) \
  function(CommandNDRangeKernel);                      \
  function(CreateCommandBuffer);                       \
  function(EnqueueCommandBuffer);                      \
  function(FinalizeCommandBuffer);                     \
  function(ReleaseCommandBuffer)

// The extension as a device has it. Thread-safe.
class CommandBufferExtension {
 public:
  // Called once, with why nothing is recorded for the device any more.
  using OnBroken = std::function<void(const absl::Status& why)>;

  // Null if the device lacks it, or does not take queues for it that are in order and profiled.
  static std::unique_ptr<CommandBufferExtension> Find(const Library& cl, cl_device_id device,
                                                      OnBroken on_broken);

  // Whether a command buffer may be enqueued while it still runs.
  bool simultaneous_use() const { return simultaneous_use_; }

  // False once a call failed that should not have.
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

// A kernel with arguments that are set for good, in one dimension.
struct RecordedLaunch {
  cl_kernel kernel;
  size_t threads;
  size_t block;
};

// Launches that each see what the ones before them wrote. Immutable. The library, the extension and
// the kernels must outlive it; it keeps its queue.
class CommandBuffer {
 public:
  // For this queue. The kernels are recorded as they are: with their arguments, and the memory that
  // they were told of. RESOURCE_EXHAUSTED: not so many, or not now; else INTERNAL.
  static absl::StatusOr<std::unique_ptr<CommandBuffer>> Record(
      const Library& cl, const CommandBufferExtension& extension, cl_command_queue queue,
      absl::Span<const RecordedLaunch> launches);

  // Enqueues all of it. CL_INVALID_OPERATION: it still runs, and may not twice at once. The event's
  // start says nothing: PoCL and Intel's runtime let it begin behind the last launch.
  cl_int Enqueue(cl_event* event) const;

 private:
  explicit CommandBuffer(const CommandBufferExtension& extension) : extension_(extension) {}

  const CommandBufferExtension& extension_;
  Handle<cl_command_queue> queue_;
  Handle<cl_command_buffer_khr> buffer_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_COMMAND_BUFFER_H_
