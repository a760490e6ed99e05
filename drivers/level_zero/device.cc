#include "drivers/level_zero/device.h"

#include "drivers/level_zero/kernel.h"
#include "drivers/level_zero/prepared_list.h"
#include "drivers/level_zero/staging.h"

namespace kiln::drivers::level_zero {

absl::StatusOr<std::shared_ptr<VendorDevice>> LevelZeroDevice::Open(
    std::shared_ptr<const Library> ze, const DeviceFacts& facts) {
  auto context = Context::Make(std::move(ze), facts);
  if (!context.ok()) return context.status();
  auto staging = LevelZeroStaging::Make(*context);
  if (!staging.ok()) return staging.status();
  return std::shared_ptr<VendorDevice>(
      new LevelZeroDevice(*std::move(context), *std::move(staging)));
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> LevelZeroDevice::LoadKernel(
    const KernelImage& image) {
  return LevelZeroKernel::Load(context_, image);
}

absl::StatusOr<std::shared_ptr<ListProgram>> LevelZeroDevice::Prepare(CommandList list,
                                                                      ListNeeds needs) {
  return Program::Make(context_, std::move(list), std::move(needs));
}

absl::StatusOr<std::shared_ptr<VendorDevice>> LevelZeroDevice::Reopen() {
  return Open(context_->shared_ze(), context_->facts());
}

}  // namespace kiln::drivers::level_zero
