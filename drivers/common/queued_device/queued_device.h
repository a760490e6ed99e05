// A device whose vendor's library has queues: everything of a device except the vendor's calls.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_QUEUED_DEVICE_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_QUEUED_DEVICE_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/caching_allocator.h"
#include "drivers/common/queued_device/in_flight.h"
#include "drivers/common/queued_device/vendor_device.h"
#include "drivers/common/submission_queue.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/device.h"

namespace kiln::drivers {

// One thread enqueues submissions and another waits for their ends, so that the device has its next
// list before it has finished one. A third makes copies to and from the host.
class QueuedDevice : public Device {
 public:
  QueuedDevice(std::shared_ptr<VendorDevice> vendor, DeviceInfo info, SteadyClock now);
  // Runs the remaining submissions.
  ~QueuedDevice() override;

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  int64_t cached_bytes() const override { return opened()->allocator->cached_bytes(); }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  // Its own buffers, and those that the vendor's device reaches.
  bool CanReach(const Buffer& buffer) const override;
  absl::StatusOr<std::unique_ptr<PreparedList>> Prepare(CommandList list) override;
  absl::Status Submit(PreparedList& list, absl::Span<Buffer* const> slots, SubmitOptions options,
                      std::function<void(SubmitResult)> done) override;
  absl::Status StartCopyToDevice(Buffer& destination, int64_t offset, absl::Span<const char> source,
                                 CopyDone done) override;
  absl::Status StartCopyToHost(const Buffer& source, int64_t offset, absl::Span<char> destination,
                               CopyDone done) override;
  absl::Status Synchronize() override;
  absl::Status Health() override { return opened()->vendor->context()->AskHealth(); }
  absl::Status Revive() override;

  // The number of threads that wait until earlier lists and copies have ended.
  int waiting() const { return in_flight_.waiting(); }

 private:
  // Until the device is lost.
  struct Opened {
    std::shared_ptr<VendorDevice> vendor;
    std::shared_ptr<CachingAllocator> allocator;
  };
  struct Submission {
    std::shared_ptr<const Opened> on;
    std::shared_ptr<ListProgram> program;
    std::shared_ptr<ListRun> run;
  };

  std::shared_ptr<const Opened> Open(std::shared_ptr<VendorDevice> vendor) const;
  std::shared_ptr<const Opened> opened() const ABSL_LOCKS_EXCLUDED(opened_mutex_);

  // Runs on the submission thread.
  void Start(Submission submission);
  // Run on the completion thread.
  void End(Submission& submission);
  static void RaiseAfter(const Opened& on, Completion* before, SignalGroup& group, int signal);

  absl::StatusOr<char*> AddressOf(const Opened& on, const Buffer& buffer) const;
  // Runs the copy on its thread. `written`: the buffer that it writes, or null.
  absl::Status StartCopy(const Opened& on, const char* written, std::function<absl::Status()> copy,
                         CopyDone done);

  const DeviceInfo info_;
  const SteadyClock now_;
  SteadyTime last_end_;  // used by the completion thread only

  mutable absl::Mutex opened_mutex_;
  std::shared_ptr<const Opened> opened_ ABSL_GUARDED_BY(opened_mutex_);

  InFlight in_flight_;

  // Last, in this order: a queue is destroyed before those that it pushes to.
  SubmissionQueue copies_;
  SubmissionQueue completions_;
  SubmissionQueue submissions_;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_QUEUED_DEVICE_H_
