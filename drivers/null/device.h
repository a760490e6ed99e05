// A device that allocates, copies, fills and signals for real, and whose kernels do nothing. Its
// memory begins as zeros, so that is what results are.
#ifndef KILN_DRIVERS_NULL_DEVICE_H_
#define KILN_DRIVERS_NULL_DEVICE_H_

#include <atomic>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/caching_allocator.h"
#include "drivers/common/submission_queue.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/device.h"

namespace kiln::drivers::null {

class NullDevice : public Device {
 public:
  NullDevice(DeviceInfo info, SteadyClock now, std::function<absl::Status()> fault);

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  int64_t cached_bytes() const override { return allocator_->cached_bytes(); }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  // Other null devices' as well, since all of it is the host's.
  bool CanReach(const Buffer& buffer) const override;
  absl::StatusOr<std::unique_ptr<PreparedList>> Prepare(CommandList list) override;
  absl::Status Submit(PreparedList& list, absl::Span<Buffer* const> slots, SubmitOptions options,
                      std::function<void(SubmitResult)> done) override;
  // Copies in memory: they have ended when this returns.
  absl::Status StartCopyToDevice(Buffer& destination, int64_t offset, absl::Span<const char> source,
                                 CopyDone done) override;
  absl::Status StartCopyToHost(const Buffer& source, int64_t offset, absl::Span<char> destination,
                               CopyDone done) override;
  absl::Status Synchronize() override;
  absl::Status Health() override;
  absl::Status Revive() override;

 private:
  const DeviceInfo info_;
  const SteadyClock now_;
  const std::function<absl::Status()> fault_;
  const std::shared_ptr<CachingAllocator> allocator_;
  mutable absl::Mutex mutex_;
  // Of the buffers that were made since the last loss.
  std::shared_ptr<std::atomic<bool>> memory_lost_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<std::atomic<bool>>(false);
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  SubmissionQueue queue_;  // last: its destructor runs what is left, with the members above
};

}  // namespace kiln::drivers::null

#endif  // KILN_DRIVERS_NULL_DEVICE_H_
