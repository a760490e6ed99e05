// One device of a vendor's library, which a driver with a queued device implements.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_VENDOR_DEVICE_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_VENDOR_DEVICE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/common/queued_device/device_context.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/interface/kernel_image.h"

namespace kiln::drivers {

// Copies between host and device memory. They run concurrently with lists, one at a time.
class HostCopies {
 public:
  virtual ~HostCopies() = default;
  // Return when the copy has ended. Called on the device's thread for copies.
  virtual absl::Status ToDevice(char* to, absl::Span<const char> from) = 0;
  virtual absl::Status ToHost(absl::Span<char> to, const char* from) = 0;
};

// From opening the device until it is lost. Thread-safe, except where a class says otherwise.
class VendorDevice {
 public:
  virtual ~VendorDevice() = default;

  const std::shared_ptr<DeviceContext>& context() const { return shared_context_; }
  HostCopies& copies() const { return *copies_; }

  // As Device::LoadKernel and Device::Prepare. `needs`: of the list, which has been checked.
  virtual absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) = 0;
  virtual absl::StatusOr<std::shared_ptr<ListProgram>> Prepare(CommandList list,
                                                               ListNeeds needs) = 0;

  // Whether lists may use memory of this context, which is another one.
  virtual bool Reaches(const DeviceContext& owner) const { return false; }
  // The most bytes of one buffer.
  virtual int64_t buffer_bytes_max() const { return std::numeric_limits<int64_t>::max(); }

  // Opens the lost device again. Requires: nothing of this object is used any more, except that
  // buffers, kernels and programs are destroyed.
  virtual absl::StatusOr<std::shared_ptr<VendorDevice>> Reopen() = 0;

 protected:
  VendorDevice(std::shared_ptr<DeviceContext> context, std::unique_ptr<HostCopies> copies)
      : shared_context_(std::move(context)), copies_(std::move(copies)) {}

 private:
  const std::shared_ptr<DeviceContext> shared_context_;
  const std::unique_ptr<HostCopies> copies_;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_VENDOR_DEVICE_H_
