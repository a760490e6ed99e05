// NVIDIA GPUs that CUDA's driver finds.
#ifndef KILN_DRIVERS_CUDA_DRIVER_H_
#define KILN_DRIVERS_CUDA_DRIVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"

namespace kiln::drivers::cuda {

struct CudaOptions {
  // 0: seven eighths of a device's memory.
  int64_t memory_limit_bytes_per_device = 0;
  std::string library = "libcuda.so.1";
  SteadyClock now = std::chrono::steady_clock::now;
};

// Loads NVIDIA's code into the process; a crash in it is a crash of the process.
class CudaDriver : public Driver {
 public:
  explicit CudaDriver(CudaOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "cuda"; }
  // Devices keep CUDA's numbers, even if ones before them are unusable.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) override;

 private:
  const CudaOptions options_;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_DRIVER_H_
