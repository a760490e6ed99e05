#include "drivers/null/driver.h"

#include "absl/strings/str_cat.h"
#include "drivers/null/device.h"

namespace kiln::drivers::null {

absl::StatusOr<std::vector<std::unique_ptr<Device>>> NullDriver::Enumerate(std::string* why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  if (options_.devices == 0) *why_none = "null devices are not configured";
  for (int i = 0; i < options_.devices; ++i) {
    DeviceInfo info;
    info.name = absl::StrCat("null:", i);
    info.model = "runs nothing";
    info.target.architecture = "null";
    // Its programs are compiled as for a CPU.
    info.target.costs = kVectorCoreCosts;
    info.target.rates = kVectorCoreRates;
    info.memory_bytes = options_.memory_bytes_per_device;
    devices.push_back(std::make_unique<NullDevice>(std::move(info), options_.now, options_.fault));
  }
  return devices;
}

}  // namespace kiln::drivers::null
