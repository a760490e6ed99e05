// An NVIDIA GPU.
#ifndef KILN_DRIVERS_CUDA_DEVICE_H_
#define KILN_DRIVERS_CUDA_DEVICE_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/vendor_device.h"
#include "drivers/cuda/context.h"
#include "drivers/cuda/peer_access.h"
#include "drivers/interface/target.h"

namespace kiln::drivers::cuda {

// No CUDA callbacks are used: they may not call CUDA.
class CudaDevice : public VendorDevice {
 public:
  // `peers`: all devices of the driver; lists may use buffers of those that the hardware connects.
  // Errors: those of creating CUDA's context, streams and pinned memory.
  static absl::StatusOr<std::shared_ptr<VendorDevice>> Open(std::shared_ptr<const Library> cuda,
                                                            CUdevice device, const Target& target,
                                                            std::shared_ptr<PeerAccess> peers);

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(const KernelImage& image) override;
  absl::StatusOr<std::shared_ptr<ListProgram>> Prepare(CommandList list, ListNeeds needs) override;
  bool Reaches(const DeviceContext& owner) const override {
    return peers_->Reaches(context_.get(), &owner);
  }
  // CUDA destroys everything in the lost context.
  absl::StatusOr<std::shared_ptr<VendorDevice>> Reopen() override;

 private:
  CudaDevice(std::shared_ptr<Context> context, std::unique_ptr<HostCopies> copies, Target target,
             std::shared_ptr<PeerAccess> peers)
      : VendorDevice(context, std::move(copies)),
        context_(std::move(context)),
        target_(std::move(target)),
        peers_(std::move(peers)) {}

  const std::shared_ptr<Context> context_;
  const Target target_;
  const std::shared_ptr<PeerAccess> peers_;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_DEVICE_H_
