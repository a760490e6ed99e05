// A driver finds the devices of one kind: "cpu", "cuda", …
#ifndef KILN_DRIVERS_INTERFACE_DRIVER_H_
#define KILN_DRIVERS_INTERFACE_DRIVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/interface/device.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::drivers {

class Driver {
 public:
  virtual ~Driver() = default;

  // "cpu": the part of a device's name before the colon.
  virtual std::string name() const = 0;

  // Opens every device of this kind. No device, a missing vendor library or a broken one is an
  // empty list; `why_none` then says why in one sentence. Beside devices it names those that were
  // found and left out, each with the reason.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) = 0;

  // Has the vendor's compiler make of an image what the device that `finisher` names loads: the
  // image with KernelImage::finished. It may end, stop or choke the process, so it is called in one
  // of its own, a call at a time, where nobody calls Enumerate; what it opens stays open for the
  // next. The errors of LoadKernel; FAILED_PRECONDITION if that device with these versions is not
  // found; UNIMPLEMENTED if the device cannot do it, and has to load images as they are.
  virtual absl::StatusOr<KernelImage> Finish(const KernelImage& image, const Finisher& finisher);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_DRIVER_H_
