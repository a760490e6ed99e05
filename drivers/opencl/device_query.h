// Queries OpenCL for its devices and decides which of them Kiln can use.
#ifndef KILN_DRIVERS_OPENCL_DEVICE_QUERY_H_
#define KILN_DRIVERS_OPENCL_DEVICE_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/common/queued_device/vendor_driver.h"
#include "drivers/opencl/library.h"

namespace kiln::drivers::opencl {

struct DeviceFacts : FoundDevice {
  cl_device_id id = nullptr;
  std::string platform;
  bool is_cpu = false;
  int64_t allocation_bytes_max = 0;  // of one buffer
  std::string build_options;         // of clBuildProgram
};

// The library's current answer; does not run anything on the device.
bool IsAvailable(const Library& cl, cl_device_id id);

// Returns the devices of all platforms. CPUs are last, so that they, which are not offered by
// default, do not shift the numbers of the others. NOT_FOUND: there is no platform or no device;
// the message is one sentence with the remedy.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& cl);

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_DEVICE_QUERY_H_
