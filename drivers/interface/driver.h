// A driver finds the devices of one kind: "cpu", "cuda", …
#ifndef KILN_DRIVERS_INTERFACE_DRIVER_H_
#define KILN_DRIVERS_INTERFACE_DRIVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/interface/device.h"

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
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_DRIVER_H_
