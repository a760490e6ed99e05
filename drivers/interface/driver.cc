#include "drivers/interface/driver.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace kiln::drivers {

absl::StatusOr<KernelImage> Driver::Finish(const KernelImage& image, const Finisher& finisher) {
  return absl::UnimplementedError(
      absl::StrCat("the devices of ", name(), " load kernel images without another step"));
}

}  // namespace kiln::drivers
