#include "drivers/cuda/device.h"

#include "drivers/cuda/kernel.h"
#include "drivers/cuda/prepared_list.h"
#include "drivers/cuda/staging.h"

namespace kiln::drivers::cuda {

absl::StatusOr<std::shared_ptr<VendorDevice>> CudaDevice::Open(std::shared_ptr<const Library> cuda,
                                                               CUdevice device,
                                                               const Target& target,
                                                               std::shared_ptr<PeerAccess> peers) {
  auto context = Context::Make(std::move(cuda), device);
  if (!context.ok()) return context.status();
  auto staging = CudaStaging::Make(*context);
  if (!staging.ok()) return staging.status();
  peers->Enter(*context);
  return std::shared_ptr<VendorDevice>(
      new CudaDevice(*std::move(context), *std::move(staging), target, std::move(peers)));
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> CudaDevice::LoadKernel(const KernelImage& image) {
  return CudaKernel::Load(context_, target_, image);
}

absl::StatusOr<std::shared_ptr<ListProgram>> CudaDevice::Prepare(CommandList list,
                                                                 ListNeeds needs) {
  return Program::Make(context_, std::move(list), std::move(needs));
}

absl::StatusOr<std::shared_ptr<VendorDevice>> CudaDevice::Reopen() {
  context_->Abandon();
  return Open(context_->shared_cuda(), context_->device(), target_, peers_);
}

}  // namespace kiln::drivers::cuda
