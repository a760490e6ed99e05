#include "drivers/hsa/device.h"

#include "drivers/hsa/kernel.h"
#include "drivers/hsa/prepared_list.h"
#include "drivers/hsa/staging.h"

namespace kiln::drivers::hsa {

absl::StatusOr<std::shared_ptr<VendorDevice>> HsaDevice::Open(std::shared_ptr<const Library> hsa,
                                                              const DeviceFacts& facts,
                                                              std::vector<hsa_agent_t> peers) {
  auto context = Context::Make(std::move(hsa), facts, peers);
  if (!context.ok()) return context.status();
  auto staging = HsaStaging::Make(*context);
  if (!staging.ok()) return staging.status();
  return std::shared_ptr<VendorDevice>(
      new HsaDevice(*std::move(context), *std::move(staging), std::move(peers)));
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> HsaDevice::LoadKernel(const KernelImage& image) {
  return HsaKernel::Load(context_, image);
}

absl::StatusOr<std::shared_ptr<ListProgram>> HsaDevice::Prepare(CommandList list, ListNeeds needs) {
  return Program::Make(context_, std::move(list), std::move(needs));
}

bool HsaDevice::Reaches(const DeviceContext& owner) const {
  const auto* other = dynamic_cast<const Context*>(&owner);
  return other != nullptr && other->agent().handle != context_->agent().handle &&
         other->IsOpenTo(context_->agent()) && other->Health().ok();
}

absl::StatusOr<std::shared_ptr<VendorDevice>> HsaDevice::Reopen() {
  return Open(context_->shared_hsa(), context_->facts(), peers_);
}

}  // namespace kiln::drivers::hsa
