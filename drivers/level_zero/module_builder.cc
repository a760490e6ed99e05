#include "drivers/level_zero/module_builder.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/level_zero/kernel.h"
#include "drivers/level_zero/library.h"

namespace kiln::drivers::level_zero {
namespace {

bool Is(const DeviceFacts& facts, const Finisher& finisher) {
  const Finisher& other = facts.target.finisher;
  return other.device == finisher.device && other.version == finisher.version;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModuleBuilder>> ModuleBuilder::Open(const std::string& library) {
  auto ze = Library::Open(library);
  if (!ze.ok()) return absl::FailedPreconditionError(ze.status().message());
  auto devices = QueryDevices(**ze);
  if (!devices.ok()) return absl::FailedPreconditionError(devices.status().message());
  return std::unique_ptr<ModuleBuilder>(new ModuleBuilder(*std::move(ze), *std::move(devices)));
}

absl::StatusOr<KernelImage> ModuleBuilder::Build(const KernelImage& image,
                                                 const Finisher& finisher) {
  const auto facts = Find(finisher);
  if (!facts.ok()) return facts.status();
  auto context = ContextOf(**facts);
  if (!context.ok()) return context.status();
  KernelImage finished = image;
  finished.finished.clear();
  auto kernel = LevelZeroKernel::Load(*std::move(context), finished);
  if (!kernel.ok()) return kernel.status();
  auto binary = (*kernel)->Binary();
  if (!binary.ok()) return binary.status();
  finished.finished = *std::move(binary);
  return finished;
}

absl::StatusOr<const DeviceFacts*> ModuleBuilder::Find(const Finisher& finisher) const {
  for (const DeviceFacts& facts : devices_) {
    if (Is(facts, finisher)) return &facts;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "another process cannot find ", finisher.device,
      " as it was when kilnd started; restart kilnd if the vendor's driver was updated"));
}

absl::StatusOr<std::shared_ptr<Context>> ModuleBuilder::ContextOf(const DeviceFacts& facts) {
  std::shared_ptr<Context>& context = contexts_[facts.device];
  // A lost device may work again.
  if (context == nullptr || !context->Health().ok()) {
    auto made = Context::Make(ze_, facts);
    if (!made.ok()) return made.status();
    context = *std::move(made);
  }
  return context;
}

}  // namespace kiln::drivers::level_zero
