// The state that all objects of a device share: the library, OpenCL's context, and whether it still
// works.
#ifndef KILN_DRIVERS_OPENCL_CONTEXT_H_
#define KILN_DRIVERS_OPENCL_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/queued_device/device_context.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/opencl/command_buffer.h"
#include "drivers/opencl/handle.h"

namespace kiln::drivers::opencl {

class Context : public DeviceContext {
 public:
  // Alignment of memory: that of OpenCL's largest type, long16, which every device supports.
  static constexpr cl_uint kAlignment = 128;

  // `command_buffers`: the device's extension, if it is to be used.
  static absl::StatusOr<std::shared_ptr<Context>> Make(
      std::shared_ptr<const Library> cl, cl_device_id device,
      std::unique_ptr<CommandBufferExtension> command_buffers);
  ~Context() override;

  const Library& cl() const { return *cl_; }
  const std::shared_ptr<const Library>& shared_cl() const { return cl_; }
  cl_device_id device() const { return device_; }
  cl_context get() const { return context_.get(); }

  // The queue for lists.
  cl_command_queue list_queue() const { return list_queue_.get(); }
  // Null if lists are enqueued command by command.
  CommandBufferExtension* command_buffers() const { return command_buffers_.get(); }

  // An in-order queue with profiling.
  absl::StatusOr<Handle<cl_command_queue>> MakeQueue() const;

  void* AllocateMemory(int64_t bytes) override;
  void ReleaseMemory(void* memory) override;
  // Whether memory that a kernel reaches only through addresses in memory must be named to it
  // (clSetKernelExecInfo).
  bool wants_memory_named() const { return wants_memory_named_; }
  // How many blocks of memory were released so far. An address set in a kernel before the last
  // release may now be other memory.
  int64_t releases() const { return releases_; }

  // The error for a failed OpenCL call (`what` as for ToStatus): UNAVAILABLE if the device is lost,
  // which a trial determines and which then is permanent.
  absl::Status Failure(absl::string_view what, cl_int code);

  absl::Status AskHealth() override;
  // Fills a few bytes of the device and reads them back. Waits for running work.
  absl::Status Try() override;

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
  Handle<cl_command_queue> list_queue_;
  Handle<cl_command_queue> trial_queue_;
  void* trial_memory_ = nullptr;
  bool wants_memory_named_ = true;

  std::atomic<int64_t> releases_{0};
  absl::Mutex trial_mutex_;  // guards trial_queue_ and trial_memory_
};

// An event of a context, which must outlive it. Null: everything before it has ended.
class Event : public Completion {
 public:
  Event(Context& context, cl_event event)
      : context_(context), event_(event, context.cl().ReleaseEvent) {}
  absl::Status Await() override { return Await(context_, event_.get()); }
  static absl::Status Await(Context& context, cl_event event);
  // From the start or the end (`edge`) of one event to the end of another; 0 if the device does not
  // report them.
  static double SecondsBetween(const Context& context, cl_event from, cl_profiling_info edge,
                               cl_event to);

 private:
  Context& context_;
  const Handle<cl_event> event_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_CONTEXT_H_
