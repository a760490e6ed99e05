// Queries CUDA for its devices and decides which of them Kiln can use.
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
  // The vendor's name and the UUID, as printed by nvidia-smi -L: "NVIDIA H100 (GPU-1b2c…)".
  std::string model;
  Target target;
  int64_t memory_bytes = 0;
  // FAILED_PRECONDITION: why Kiln cannot use it.
  absl::Status usable;
};

// Returns the target of a device with these attributes. Attributes that it does not report are 0.
Target MakeTarget(const std::function<int(CUdevice_attribute)>& get);

// Returns the devices in CUDA's order. NOT_FOUND: there are none.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& cuda);

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_DEVICE_QUERY_H_
