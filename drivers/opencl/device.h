// An OpenCL device.
#ifndef KILN_DRIVERS_OPENCL_DEVICE_H_
#define KILN_DRIVERS_OPENCL_DEVICE_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/vendor_device.h"
#include "drivers/opencl/context.h"
#include "drivers/opencl/device_query.h"

namespace kiln::drivers::opencl {

class OpenClDevice : public VendorDevice {
 public:
  struct CommandBufferUse {
    bool wanted = false;
    CommandBufferExtension::OnBroken on_broken = {};
  };

  // Errors: those of creating OpenCL's context and queues.
  static absl::StatusOr<std::shared_ptr<VendorDevice>> Open(std::shared_ptr<const Library> cl,
                                                            const DeviceFacts& facts,
                                                            CommandBufferUse command_buffers);

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  absl::StatusOr<std::shared_ptr<ListProgram>> Prepare(CommandList list, ListNeeds needs) override;
  int64_t buffer_bytes_max() const override { return facts_.allocation_bytes_max; }
  // Creates a new context, queues and memory; users of the lost ones keep those.
  absl::StatusOr<std::shared_ptr<VendorDevice>> Reopen() override;

 private:
  OpenClDevice(std::shared_ptr<Context> context, std::unique_ptr<HostCopies> copies,
               DeviceFacts facts, CommandBufferUse command_buffers)
      : VendorDevice(context, std::move(copies)),
        context_(std::move(context)),
        facts_(std::move(facts)),
        command_buffers_(std::move(command_buffers)) {}

  const std::shared_ptr<Context> context_;
  const DeviceFacts facts_;
  const CommandBufferUse command_buffers_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_DEVICE_H_
