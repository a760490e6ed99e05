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

  // Opens every device of this kind. If there is no device, or the vendor library is missing or
  // broken, the list is empty and `why_none` says why in one sentence. If only some devices were
  // left out, `why_none` names them, each with the reason.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) = 0;

  // Lets the vendor's compiler turn an image into what the device named by `finisher` loads;
  // returns the image with KernelImage::finished. The compiler may terminate, stop or overload the
  // process, so this runs in a separate process, one call at a time, where Enumerate is never
  // called; what it opens stays open for the next call. Errors: those of LoadKernel;
  // FAILED_PRECONDITION if that device with these versions is not found; UNIMPLEMENTED if the
  // device cannot do this and must load images as they are.
  virtual absl::StatusOr<KernelImage> Finish(const KernelImage& image, const Finisher& finisher);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_DRIVER_H_
