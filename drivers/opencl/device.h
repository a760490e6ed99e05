// An OpenCL device.
#ifndef KILN_DRIVERS_OPENCL_DEVICE_H_
#define KILN_DRIVERS_OPENCL_DEVICE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/caching_allocator.h"
#include "drivers/common/in_flight.h"
#include "drivers/common/submission_queue.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/device.h"
#include "drivers/opencl/context.h"
#include "drivers/opencl/device_query.h"
#include "drivers/opencl/prepared_list.h"

namespace kiln::drivers::opencl {

// One thread enqueues submissions and another waits for their ends, so that the device has its next
// list before it has finished one. A third waits for copies, which have their own queue.
class OpenClDevice : public Device {
 public:
  struct CommandBufferUse {
    bool wanted = false;
    CommandBufferExtension::OnBroken on_broken = {};
  };

  // Errors: those of creating OpenCL's context and queues.
  static absl::StatusOr<std::unique_ptr<OpenClDevice>> Make(std::shared_ptr<const Library> cl,
                                                            DeviceInfo info, DeviceFacts facts,
                                                            CommandBufferUse command_buffers,
                                                            SteadyClock now);
  // Runs the remaining submissions.
  ~OpenClDevice() override;

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  int64_t cached_bytes() const override { return opened()->allocator->cached_bytes(); }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  // Only its own buffers.
  bool CanReach(const Buffer& buffer) const override;
  absl::StatusOr<std::unique_ptr<PreparedList>> Prepare(CommandList list) override;
  absl::Status Submit(PreparedList& list, absl::Span<Buffer* const> slots, SubmitOptions options,
                      std::function<void(SubmitResult)> done) override;
  absl::Status StartCopyToDevice(Buffer& destination, int64_t offset, absl::Span<const char> source,
                                 CopyDone done) override;
  absl::Status StartCopyToHost(const Buffer& source, int64_t offset, absl::Span<char> destination,
                               CopyDone done) override;
  absl::Status Synchronize() override;
  absl::Status Health() override;
  // Creates a new context, queues and memory; users of the lost ones keep those.
  absl::Status Revive() override;

  // The number of threads that wait until earlier lists and copies have ended.
  int waiting() const { return in_flight_.waiting(); }

 private:
  // OpenCL's objects for the device, until it is lost.
  struct Opened {
    std::shared_ptr<Context> context;
    std::shared_ptr<CachingAllocator> allocator;
    Handle<cl_command_queue> list_queue;
    Handle<cl_command_queue> copy_queue;
  };
  struct Submission {
    std::shared_ptr<const Opened> on;
    std::shared_ptr<Program> program;
    std::vector<char*> slots;
    SubmitOptions options;
    std::function<void(SubmitResult)> done;
    SteadyTime start;
    Enqueued enqueued;
  };

  static absl::StatusOr<std::shared_ptr<const Opened>> OpenContext(
      std::shared_ptr<const Library> cl, const DeviceInfo& info, const DeviceFacts& facts,
      const CommandBufferUse& command_buffers);
  OpenClDevice(std::shared_ptr<const Library> cl, std::shared_ptr<const Opened> opened,
               DeviceInfo info, DeviceFacts facts, CommandBufferUse command_buffers,
               SteadyClock now);
  std::shared_ptr<const Opened> opened() const ABSL_LOCKS_EXCLUDED(opened_mutex_);

  // Runs on the submission thread.
  void Start(std::shared_ptr<Submission> submission);
  // Runs on the completion thread.
  void End(Submission& submission);
  static void RaiseAfter(Context& context, Handle<cl_event> before, SignalGroup& group, int signal);

  // Waits for the event (null: returns at once). Returns the error that it ended with, if any.
  static absl::Status WaitFor(Context& context, cl_event event);
  // Fills in the times that the device measured; 0 if it measured none.
  static double MeasureOnDevice(Submission& submission);
  absl::StatusOr<char*> AddressOf(const Opened& on, const Buffer& buffer) const;
  // `written`: the memory of the buffer that the copy writes, or null.
  absl::Status StartCopy(std::shared_ptr<const Opened> on, void* destination, const void* source,
                         size_t bytes, char* written, CopyDone done);
  void EndCopy(Context& context, cl_event event, char* written, const CopyDone& done);

  const DeviceInfo info_;
  const DeviceFacts facts_;
  const CommandBufferUse command_buffers_;
  const SteadyClock now_;
  const std::shared_ptr<const Library> cl_;
  mutable absl::Mutex opened_mutex_;
  std::shared_ptr<const Opened> opened_ ABSL_GUARDED_BY(opened_mutex_);
  SteadyTime last_end_;  // used by the completion thread only

  // Held while a copy is started, which may block in the vendor's library.
  absl::Mutex copy_mutex_;
  InFlight<char*> in_flight_;

  // Last, in this order: a queue is destroyed before those that it pushes to.
  SubmissionQueue completions_;
  SubmissionQueue submissions_;
  SubmissionQueue copies_;  // waits for copies to end
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_DEVICE_H_
