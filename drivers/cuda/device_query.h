// What CUDA tells of its devices, and which of them Kiln can use.
#ifndef KILN_DRIVERS_CUDA_DEVICE_QUERY_H_
#define KILN_DRIVERS_CUDA_DEVICE_QUERY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/cuda/library.h"
#include "drivers/interface/target.h"

namespace kiln::drivers::cuda {

struct DeviceFacts {
  CUdevice device = 0;
  // The vendor's name and the UUID, as nvidia-smi -L prints it: "NVIDIA H100 (GPU-1b2c…)".
  std::string model;
  Target target;
  int64_t memory_bytes = 0;
  // FAILED_PRECONDITION: why Kiln cannot use it.
  absl::Status usable;
};

// The target of a device that answers so. What it does not tell is 0.
Target MakeTarget(const std::function<int(CUdevice_attribute)>& get);

// In CUDA's order. NOT_FOUND: there is none.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& cuda);

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_DEVICE_QUERY_H_
