// An NVIDIA GPU.
#ifndef KILN_DRIVERS_CUDA_DEVICE_H_
#define KILN_DRIVERS_CUDA_DEVICE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/caching_allocator.h"
#include "drivers/common/in_flight.h"
#include "drivers/common/submission_queue.h"
#include "drivers/cuda/context.h"
#include "drivers/cuda/peer_access.h"
#include "drivers/cuda/prepared_list.h"
#include "drivers/cuda/staging.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/device.h"

namespace kiln::drivers::cuda {

// One thread enqueues submissions and another waits for their ends, so that the device has its next
// list before it has finished one. No CUDA callbacks are used: they may not call CUDA.
class CudaDevice : public Device {
 public:
  // `peers`: all devices of the driver; lists may use buffers of those that the hardware connects.
  // Errors: those of creating CUDA's context, streams and pinned memory.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Make(std::shared_ptr<const Library> cuda,
                                                          CUdevice device, DeviceInfo info,
                                                          std::shared_ptr<PeerAccess> peers,
                                                          SteadyClock now);
  // Runs the remaining submissions.
  ~CudaDevice() override;

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  int64_t cached_bytes() const override { return opened()->allocator->cached_bytes(); }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  // Its own buffers, and those of devices that the hardware connects it to (PeerAccess).
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
  // Replaces the lost context by a new one; CUDA destroys everything in the lost one.
  absl::Status Revive() override;

  // The number of threads that wait until earlier lists and copies have ended.
  int waiting() const { return in_flight_.waiting(); }

 private:
  // CUDA's objects for the device, until it is lost.
  struct Opened {
    std::shared_ptr<Context> context;
    std::shared_ptr<CachingAllocator> allocator;
    std::unique_ptr<Staging> staging;
  };
  struct Submission {
    std::shared_ptr<const Opened> on;
    std::shared_ptr<Program> program;
    std::vector<CUdeviceptr> slots;  // of host slots: their mirrors
    std::vector<Buffer*> buffers;
    SubmitOptions options;
    std::function<void(SubmitResult)> done;
    SteadyTime start;
    Enqueued enqueued;
  };

  static absl::StatusOr<std::shared_ptr<const Opened>> OpenContext(
      std::shared_ptr<const Library> cuda, CUdevice device, const DeviceInfo& info);
  CudaDevice(std::shared_ptr<const Opened> opened, DeviceInfo info,
             std::shared_ptr<PeerAccess> peers, SteadyClock now);
  std::shared_ptr<const Opened> opened() const ABSL_LOCKS_EXCLUDED(opened_mutex_);

  // Runs on the submission thread.
  void Start(std::shared_ptr<Submission> submission);
  // Runs on the completion thread.
  void End(Submission& submission);
  static void RaiseAfter(Context& context, const Event& before, SignalGroup& group, int signal);

  // Waits for the event. Returns the error that occurred on the device before it, if any.
  static absl::Status WaitFor(Context& context, const Event& event);
  // 0 if the device does not report it.
  static double SecondsBetween(const Context& context, const Event& begin, const Event& end);
  absl::StatusOr<CUdeviceptr> AddressOf(const Opened& on, const Buffer& buffer) const;
  // Runs the copy on its thread. `written`: the buffer that it writes; 0: none.
  void StartCopy(CUdeviceptr written, std::function<absl::Status()> copy, CopyDone done);

  const DeviceInfo info_;
  const SteadyClock now_;
  const std::shared_ptr<PeerAccess> peers_;
  SteadyTime last_end_;  // used by the completion thread only

  mutable absl::Mutex opened_mutex_;
  std::shared_ptr<const Opened> opened_ ABSL_GUARDED_BY(opened_mutex_);

  InFlight<CUdeviceptr> in_flight_;

  // Last, in this order: a queue is destroyed before those that it pushes to.
  SubmissionQueue copies_;
  SubmissionQueue completions_;
  SubmissionQueue submissions_;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_DEVICE_H_
