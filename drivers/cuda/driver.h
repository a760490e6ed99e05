// NVIDIA GPUs that CUDA's driver finds.
#ifndef KILN_DRIVERS_CUDA_DRIVER_H_
#define KILN_DRIVERS_CUDA_DRIVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "drivers/common/queued_device/vendor_driver.h"

namespace kiln::drivers::cuda {

struct CudaOptions {
  int64_t memory_limit_bytes_per_device = 0;  // 0: seven eighths of a device's memory
  std::string library = "libcuda.so.1";
  SteadyClock now = std::chrono::steady_clock::now;
};

class CudaDriver : public VendorDriver {
 public:
  explicit CudaDriver(const CudaOptions& options);
  std::string name() const override { return "cuda"; }

 private:
  absl::StatusOr<std::vector<Openable>> Find() override;

  const std::string library_;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_DRIVER_H_
