// A device whose lists a test can watch, delay and lose in the middle. A real device runs them,
// command by command.
#ifndef KILN_SERVER_TESTING_FAULTY_DEVICE_H_
#define KILN_SERVER_TESTING_FAULTY_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/submission_queue.h"
#include "drivers/interface/device.h"

namespace kiln::testing {

class FaultyDevice : public drivers::Device {
 public:
  // Called before each command, on the thread that runs lists, which it may block. On an error the
  // device is lost from here on, and the list ends without the command.
  using Fault = std::function<absl::Status(const drivers::Command& command)>;

  FaultyDevice(std::unique_ptr<drivers::Device> device, Fault fault);
  ~FaultyDevice() override;

  // From now on it can be revived.
  void Mend() ABSL_LOCKS_EXCLUDED(mutex_);

  const drivers::DeviceInfo& info() const override { return device_->info(); }
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> Allocate(int64_t bytes) override;
  int64_t cached_bytes() const override { return device_->cached_bytes(); }
  absl::StatusOr<std::unique_ptr<drivers::LoadedKernel>> LoadKernel(
      const drivers::KernelImage& image) override;
  bool CanReach(const drivers::Buffer& buffer) const override { return device_->CanReach(buffer); }
  absl::StatusOr<std::unique_ptr<drivers::PreparedList>> Prepare(
      drivers::CommandList list) override;
  absl::Status Submit(drivers::PreparedList& list, absl::Span<drivers::Buffer* const> slots,
                      drivers::SubmitOptions options,
                      std::function<void(drivers::SubmitResult)> done) override;
  void StopUnwanted() override { device_->StopUnwanted(); }
  bool stops_lists() const override { return device_->stops_lists(); }
  absl::Status StartCopyToDevice(drivers::Buffer& destination, int64_t offset,
                                 absl::Span<const char> source, CopyDone done) override;
  absl::Status StartCopyToHost(const drivers::Buffer& source, int64_t offset,
                               absl::Span<char> destination, CopyDone done) override;
  absl::Status Synchronize() override;
  absl::Status Health() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Revive() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class List;

  absl::Status RunCommands(List& list, absl::Span<drivers::Buffer* const> slots,
                           const drivers::SubmitOptions& options, drivers::SubmitResult* result);
  absl::Status RunOne(drivers::PreparedList& command, absl::Span<drivers::Buffer* const> slots,
                      const drivers::SubmitOptions& options, double* seconds);

  const std::unique_ptr<drivers::Device> device_;
  const Fault fault_;
  mutable absl::Mutex mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  bool mended_ ABSL_GUARDED_BY(mutex_) = false;
  drivers::SubmissionQueue queue_;  // last: its destructor runs the remaining tasks
};

}  // namespace kiln::testing

#endif  // KILN_SERVER_TESTING_FAULTY_DEVICE_H_
