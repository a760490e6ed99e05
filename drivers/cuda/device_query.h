// Queries CUDA for its devices and decides which of them Kiln can use.
#ifndef KILN_DRIVERS_CUDA_DEVICE_QUERY_H_
#define KILN_DRIVERS_CUDA_DEVICE_QUERY_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/common/queued_device/vendor_driver.h"
#include "drivers/cuda/library.h"

namespace kiln::drivers::cuda {

struct DeviceFacts : FoundDevice {
  CUdevice device = 0;
};

// Returns the target of a device with these attributes. Attributes that it does not report are 0.
Target MakeTarget(const std::function<int(CUdevice_attribute)>& get);

// Returns the devices in CUDA's order. NOT_FOUND: there are none.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& cuda);

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_DEVICE_QUERY_H_
