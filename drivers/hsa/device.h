// An AMD GPU.
#ifndef KILN_DRIVERS_HSA_DEVICE_H_
#define KILN_DRIVERS_HSA_DEVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/vendor_device.h"
#include "drivers/hsa/context.h"

namespace kiln::drivers::hsa {

class HsaDevice : public VendorDevice {
 public:
  // `peers`: all GPUs; their lists may use this one's buffers where the hardware allows it. Errors:
  // those of creating HSA's queue, signals and host memory.
  static absl::StatusOr<std::shared_ptr<VendorDevice>> Open(std::shared_ptr<const Library> hsa,
                                                            const DeviceFacts& facts,
                                                            std::vector<hsa_agent_t> peers);

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  absl::StatusOr<std::shared_ptr<ListProgram>> Prepare(CommandList list, ListNeeds needs) override;
  bool Reaches(const DeviceContext& owner) const override;
  absl::StatusOr<std::shared_ptr<VendorDevice>> Reopen() override;

 private:
  HsaDevice(std::shared_ptr<Context> context, std::unique_ptr<HostCopies> copies,
            std::vector<hsa_agent_t> peers)
      : VendorDevice(context, std::move(copies)),
        context_(std::move(context)),
        peers_(std::move(peers)) {}

  const std::shared_ptr<Context> context_;
  const std::vector<hsa_agent_t> peers_;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_DEVICE_H_
