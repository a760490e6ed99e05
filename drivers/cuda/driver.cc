#include "drivers/cuda/driver.h"

#include "drivers/cuda/device.h"
#include "drivers/cuda/device_query.h"
#include "drivers/cuda/library.h"

namespace kiln::drivers::cuda {

CudaDriver::CudaDriver(const CudaOptions& options)
    : VendorDriver({.vendor = "CUDA",
                    .memory_limit_bytes_per_device = options.memory_limit_bytes_per_device,
                    .now = options.now}),
      library_(options.library) {}

absl::StatusOr<std::vector<VendorDriver::Openable>> CudaDriver::Find() {
  const auto cuda = Library::Open(library_);
  if (!cuda.ok()) return cuda.status();
  const auto devices = QueryDevices(**cuda);
  if (!devices.ok()) return devices.status();
  std::vector<Openable> found;
  for (const auto peers = std::make_shared<PeerAccess>(); const DeviceFacts& facts : *devices) {
    found.push_back({facts, [cuda = *cuda, facts, peers] {
                       return CudaDevice::Open(cuda, facts.device, facts.target, peers);
                     }});
  }
  return found;
}

}  // namespace kiln::drivers::cuda
