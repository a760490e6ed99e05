// An AMD GPU.
#ifndef KILN_DRIVERS_HSA_DEVICE_H_
#define KILN_DRIVERS_HSA_DEVICE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/caching_allocator.h"
#include "drivers/common/in_flight.h"
#include "drivers/common/submission_queue.h"
#include "drivers/hsa/context.h"
#include "drivers/hsa/prepared_list.h"
#include "drivers/hsa/staging.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/device.h"

namespace kiln::drivers::hsa {

// One thread enqueues submissions and another waits for their ends, so that the device has its next
// list before it has finished one.
class HsaDevice : public Device {
 public:
  // `peers`: all GPUs; their lists may use this one's buffers where the hardware allows it. Errors:
  // those of creating HSA's queue, signals and host memory.
  static absl::StatusOr<std::unique_ptr<HsaDevice>> Make(std::shared_ptr<const Library> hsa,
                                                         const DeviceFacts& facts, DeviceInfo info,
                                                         std::vector<hsa_agent_t> peers,
                                                         SteadyClock now);
  // Runs the remaining submissions.
  ~HsaDevice() override;

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  int64_t cached_bytes() const override { return opened()->allocator->cached_bytes(); }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  // Its own buffers, and those of GPUs whose memory the hardware lets it access.
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
  // Replaces the lost queue and memory by new ones.
  absl::Status Revive() override;

  // The number of threads that wait until earlier lists and copies have ended.
  int waiting() const { return in_flight_.waiting(); }

 private:
  // HSA's objects for the device, until it is lost.
  struct Opened {
    std::shared_ptr<Context> context;
    std::shared_ptr<CachingAllocator> allocator;
    std::unique_ptr<Staging> staging;
  };
  struct Submission {
    std::shared_ptr<const Opened> on;
    std::shared_ptr<Program> program;
    std::vector<char*> slots;  // of host slots: their mirrors
    std::vector<Buffer*> buffers;
    SubmitOptions options;
    std::function<void(SubmitResult)> done;
    SteadyTime start;
    Enqueued enqueued;
  };

  static absl::StatusOr<std::shared_ptr<const Opened>> OpenContext(
      std::shared_ptr<const Library> hsa, const DeviceFacts& facts, const DeviceInfo& info,
      const std::vector<hsa_agent_t>& peers);
  HsaDevice(std::shared_ptr<const Opened> opened, DeviceInfo info, std::vector<hsa_agent_t> peers,
            SteadyClock now);
  std::shared_ptr<const Opened> opened() const ABSL_LOCKS_EXCLUDED(opened_mutex_);

  // Runs on the submission thread.
  void Start(std::shared_ptr<Submission> submission);
  // Runs on the completion thread.
  void End(Submission& submission);
  static void RaiseAfter(Context& context, const Signal& before, SignalGroup& group, int signal);

  // Waits for everything enqueued, unless the device is lost.
  static void Drain(Context& context);
  absl::StatusOr<char*> AddressOf(const Opened& on, const Buffer& buffer) const;
  // Runs the copy on its thread. `written`: the buffer that it writes; 0: none.
  void StartCopy(char* written, std::function<absl::Status()> copy, CopyDone done);

  const DeviceInfo info_;
  const SteadyClock now_;
  const std::vector<hsa_agent_t> peers_;
  SteadyTime last_end_;  // used by the completion thread only

  mutable absl::Mutex opened_mutex_;
  std::shared_ptr<const Opened> opened_ ABSL_GUARDED_BY(opened_mutex_);

  InFlight<char*> in_flight_;

  // Last, in this order: a queue is destroyed before those that it pushes to.
  SubmissionQueue copies_;
  SubmissionQueue completions_;
  SubmissionQueue submissions_;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_DEVICE_H_
