// The state that all objects of a device share: the library, OpenCL's context, and whether it still
// works.
#ifndef KILN_DRIVERS_OPENCL_CONTEXT_H_
#define KILN_DRIVERS_OPENCL_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "drivers/opencl/command_buffer.h"
#include "drivers/opencl/handle.h"

namespace kiln::drivers::opencl {

// Thread-safe. Shared by the device with its buffers, kernels and lists, which may outlive it.
class Context {
 public:
  // Alignment of memory: that of OpenCL's largest type, long16, which every device supports.
  static constexpr cl_uint kAlignment = 128;

  // `command_buffers`: the device's extension, if it is to be used.
  static absl::StatusOr<std::shared_ptr<Context>> Make(
      std::shared_ptr<const Library> cl, cl_device_id device,
      std::unique_ptr<CommandBufferExtension> command_buffers);
  ~Context();

  const Library& cl() const { return *cl_; }
  cl_device_id device() const { return device_; }
  cl_context get() const { return context_.get(); }

  // Null if lists are enqueued command by command.
  CommandBufferExtension* command_buffers() const { return command_buffers_.get(); }

  // An in-order queue with profiling.
  absl::StatusOr<Handle<cl_command_queue>> MakeQueue() const;

  // Aligned to kAlignment. Null: out of memory.
  void* AllocateMemory(int64_t bytes) const;
  void ReleaseMemory(void* memory) const;
  // Whether memory that a kernel reaches only through addresses in memory must be named to it
  // (clSetKernelExecInfo).
  bool wants_memory_named() const { return wants_memory_named_; }
  // How many blocks of memory were released so far. An address set in a kernel before the last
  // release may now be other memory.
  int64_t releases() const { return releases_; }

  // The error for a failed OpenCL call (`what` as for ToStatus): UNAVAILABLE if the device is lost,
  // which a trial determines and which then is permanent.
  absl::Status Failure(absl::string_view what, cl_int code);

  // OK, or why the device is lost.
  absl::Status Health() const;
  // Marks the device as lost.
  void Lose(absl::string_view why);
  // Waits for running work. UNAVAILABLE if the device does not work; it is then marked as lost.
  absl::Status Try();

 private:
  Context(std::shared_ptr<const Library> cl, cl_device_id device)
      : cl_(std::move(cl)), device_(device) {}
  // Whether a few bytes can be filled and read back. Waits for running work, so Health must not
  // wait for this.
  bool DeviceWorks();

  const std::shared_ptr<const Library> cl_;
  const cl_device_id device_;
  std::unique_ptr<CommandBufferExtension> command_buffers_;
  Handle<cl_context> context_;
  Handle<cl_command_queue> trial_queue_;
  void* trial_memory_ = nullptr;
  bool wants_memory_named_ = true;

  mutable std::atomic<int64_t> releases_{0};
  absl::Mutex trial_mutex_;  // guards trial_queue_ and trial_memory_
  mutable absl::Mutex mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_CONTEXT_H_
