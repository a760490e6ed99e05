#include "drivers/common/queued_device/kernel_builder.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace kiln::drivers {

absl::StatusOr<KernelImage> KernelBuilder::Build(const KernelImage& image,
                                                 const Finisher& finisher) {
  const auto device = std::find_if(devices_.begin(), devices_.end(), [&](const Finisher& other) {
    return other.device == finisher.device && other.version == finisher.version;
  });
  if (device == devices_.end()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "another process cannot find ", finisher.device,
        " as it was when kilnd started; restart kilnd if the vendor's driver was updated"));
  }
  KernelImage finished = image;
  finished.finished.clear();
  auto binary = Binary(static_cast<size_t>(device - devices_.begin()), finished);
  if (!binary.ok()) return binary.status();
  finished.finished = *std::move(binary);
  return finished;
}

}  // namespace kiln::drivers
