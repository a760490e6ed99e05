// A device that really allocates, copies, fills and signals, but whose kernels do nothing. Its
// memory starts as zeros, so results are zeros.
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
  // Also true for buffers of other null devices, since all memory is the host's.
  bool CanReach(const Buffer& buffer) const override;
  absl::StatusOr<std::unique_ptr<PreparedList>> Prepare(CommandList list) override;
  absl::Status Submit(PreparedList& list, absl::Span<Buffer* const> slots, SubmitOptions options,
                      std::function<void(SubmitResult)> done) override;
  // Copies are plain memory copies: they have ended when this returns.
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
  // Shared with all buffers allocated since the last loss.
  std::shared_ptr<std::atomic<bool>> memory_lost_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<std::atomic<bool>>(false);
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  SubmissionQueue queue_;  // last: its destructor runs the rest, with the members above
};

}  // namespace kiln::drivers::null

#endif  // KILN_DRIVERS_NULL_DEVICE_H_
