// A GPU of a Level Zero driver.
#ifndef KILN_DRIVERS_LEVEL_ZERO_DEVICE_H_
#define KILN_DRIVERS_LEVEL_ZERO_DEVICE_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/vendor_device.h"
#include "drivers/level_zero/context.h"

namespace kiln::drivers::level_zero {

class LevelZeroDevice : public VendorDevice {
 public:
  // Errors: those of creating a context, its queues and host memory.
  static absl::StatusOr<std::shared_ptr<VendorDevice>> Open(std::shared_ptr<const Library> ze,
                                                            const DeviceFacts& facts);

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  absl::StatusOr<std::shared_ptr<ListProgram>> Prepare(CommandList list, ListNeeds needs) override;
  int64_t buffer_bytes_max() const override { return context_->facts().allocation_bytes_max; }
  // Creates a new context in addition to the lost one.
  absl::StatusOr<std::shared_ptr<VendorDevice>> Reopen() override;

 private:
  LevelZeroDevice(std::shared_ptr<Context> context, std::unique_ptr<HostCopies> copies)
      : VendorDevice(context, std::move(copies)), context_(std::move(context)) {}

  const std::shared_ptr<Context> context_;
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_DEVICE_H_
