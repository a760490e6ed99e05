// AMD GPUs that the HSA runtime finds.
#ifndef KILN_DRIVERS_HSA_DRIVER_H_
#define KILN_DRIVERS_HSA_DRIVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "drivers/common/queued_device/vendor_driver.h"

namespace kiln::drivers::hsa {

struct HsaOptions {
  int64_t memory_limit_bytes_per_device = 0;  // 0: seven eighths of a device's memory
  std::string library = "libhsa-runtime64.so.1";
  SteadyClock now = std::chrono::steady_clock::now;
};

class HsaDriver : public VendorDriver {
 public:
  explicit HsaDriver(const HsaOptions& options);
  std::string name() const override { return "hsa"; }

 private:
  absl::StatusOr<std::vector<Openable>> Find() override;

  const std::string library_;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_DRIVER_H_
