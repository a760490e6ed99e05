// AMD GPUs that the HSA runtime finds.
#ifndef KILN_DRIVERS_HSA_DRIVER_H_
#define KILN_DRIVERS_HSA_DRIVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"

namespace kiln::drivers::hsa {

struct HsaOptions {
  // 0: seven eighths of a device's memory.
  int64_t memory_limit_bytes_per_device = 0;
  std::string library = "libhsa-runtime64.so.1";
  SteadyClock now = std::chrono::steady_clock::now;
};

// Loads AMD's code into the process; a crash in it is a crash of the process.
class HsaDriver : public Driver {
 public:
  explicit HsaDriver(HsaOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "hsa"; }
  // A device's number is its position among HSA's GPUs, even if ones before it are unusable.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) override;

 private:
  const HsaOptions options_;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_DRIVER_H_
