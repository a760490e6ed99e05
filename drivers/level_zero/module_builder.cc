#include "drivers/level_zero/module_builder.h"

#include <utility>

#include "drivers/common/queued_device/vendor_driver.h"
#include "drivers/level_zero/kernel.h"

namespace kiln::drivers::level_zero {

absl::StatusOr<std::unique_ptr<KernelBuilder>> ModuleBuilder::Open(const std::string& library) {
  auto ze = Library::Open(library);
  if (!ze.ok()) return absl::FailedPreconditionError(ze.status().message());
  auto devices = QueryDevices(**ze);
  if (!devices.ok()) return absl::FailedPreconditionError(devices.status().message());
  return std::unique_ptr<KernelBuilder>(new ModuleBuilder(*std::move(ze), *std::move(devices)));
}

ModuleBuilder::ModuleBuilder(std::shared_ptr<const Library> ze, std::vector<DeviceFacts> devices)
    : KernelBuilder(FinishersOf(devices)), ze_(std::move(ze)), devices_(std::move(devices)) {}

absl::StatusOr<std::string> ModuleBuilder::Binary(size_t device, const KernelImage& image) {
  std::shared_ptr<Context>& context = contexts_[device];
  // A lost device may work again.
  if (context == nullptr || !context->Health().ok()) {
    auto made = Context::Make(ze_, devices_[device]);
    if (!made.ok()) return made.status();
    context = *std::move(made);
  }
  const auto kernel = LevelZeroKernel::Load(context, image);
  return kernel.ok() ? (*kernel)->Binary() : kernel.status();
}

}  // namespace kiln::drivers::level_zero
