// What OpenCL tells of its devices, and which of them Kiln can use.
#ifndef KILN_DRIVERS_OPENCL_DEVICE_QUERY_H_
#define KILN_DRIVERS_OPENCL_DEVICE_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/interface/target.h"
#include "drivers/opencl/library.h"

namespace kiln::drivers::opencl {

struct DeviceFacts {
  cl_device_id id = nullptr;
  std::string model;
  std::string platform;
  bool is_cpu = false;
  Target target;
  int64_t memory_bytes = 0;
  bool shares_host_memory = false;
  int64_t allocation_bytes_max = 0;  // of one buffer
  std::string build_options;         // of clBuildProgram
  // FAILED_PRECONDITION: why Kiln cannot use it.
  absl::Status usable;
};

// As the library says at this moment, without asking the device to do anything.
bool IsAvailable(const Library& cl, cl_device_id id);

// Of all platforms, CPUs last, so that what is not named by default does not shift the numbers of
// what is. NOT_FOUND: there is no platform or no device; one sentence with the remedy.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& cl);

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_DEVICE_QUERY_H_
