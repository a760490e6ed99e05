// Some of this machine's cores as a device.
#ifndef KILN_DRIVERS_CPU_DEVICE_H_
#define KILN_DRIVERS_CPU_DEVICE_H_

#include <functional>
#include <memory>

#include "drivers/common/caching_allocator.h"
#include "drivers/common/submission_queue.h"
#include "drivers/cpu/group_threads.h"
#include "drivers/cpu/worker_pool.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/device.h"

namespace kiln::drivers::cpu {

class Program;

// A submission runs on the queue's thread; large kernels are shared with the workers. While more
// submissions wait, `done` is called on another thread, since a completion callback takes as long
// as a short list. Any buffer with a host pointer may be in a slot, also one of another CPU device.
class CpuDevice : public Device {
 public:
  // info.target.limits.compute_units is the number of threads; cores() is how many of them can run
  // at once. Single-threaded devices that outnumber the cores share `group_threads`; null: each
  // device waits by itself.
  CpuDevice(DeviceInfo info, std::function<int()> cores, SteadyClock now,
            std::shared_ptr<GroupThreads> group_threads = nullptr);

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  int64_t cached_bytes() const override { return allocator_->cached_bytes(); }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  // True for all memory that the host can address.
  bool CanReach(const Buffer& buffer) const override { return buffer.host_pointer() != nullptr; }
  absl::StatusOr<std::unique_ptr<PreparedList>> Prepare(CommandList list) override;
  absl::Status Submit(PreparedList& list, absl::Span<Buffer* const> slots, SubmitOptions options,
                      std::function<void(SubmitResult)> done) override;
  void StopUnwanted() override { pool_.Interrupt(); }
  bool stops_lists() const override { return true; }
  bool yields() const override { return true; }
  bool commits() const override { return true; }
  // Copies are plain memory copies: they have ended when this returns.
  absl::Status StartCopyToDevice(Buffer& destination, int64_t offset, absl::Span<const char> source,
                                 CopyDone done) override;
  absl::Status StartCopyToHost(const Buffer& source, int64_t offset, absl::Span<char> destination,
                               CopyDone done) override;
  absl::Status Synchronize() override;
  absl::Status Health() override;
  absl::Status Revive() override { return Health(); }

 private:
  void Run(Program& program, absl::Span<char* const> addresses, const SubmitOptions& options,
           std::function<void(SubmitResult)> done);

  const DeviceInfo info_;
  std::shared_ptr<CachingAllocator> allocator_;
  WorkerPool pool_;
  const std::shared_ptr<GroupThreads> group_threads_;
  SubmissionQueue completions_;
  SubmissionQueue submissions_;  // last: its destructor runs the rest, with the members above
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_DEVICE_H_
