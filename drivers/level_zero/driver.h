// The GPUs that Level Zero's drivers find, which are Intel's.
#ifndef KILN_DRIVERS_LEVEL_ZERO_DRIVER_H_
#define KILN_DRIVERS_LEVEL_ZERO_DRIVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/common/queued_device/vendor_driver.h"

namespace kiln::drivers::level_zero {

struct LevelZeroOptions {
  // Also offer integrated GPUs, which use the host's memory: the devices' memory limits then add up
  // to more than there is.
  bool sharing_host_memory = false;
  // 0: seven eighths of a device's own memory, half of one that it shares with the host.
  int64_t memory_limit_bytes_per_device = 0;
  std::string library = "libze_loader.so.1";
  SteadyClock now = std::chrono::steady_clock::now;
};

class LevelZeroDriver : public VendorDriver {
 public:
  explicit LevelZeroDriver(const LevelZeroOptions& options);
  std::string name() const override { return "level_zero"; }

 private:
  absl::StatusOr<std::vector<Openable>> Find() override;
  absl::StatusOr<std::unique_ptr<KernelBuilder>> OpenBuilder() override;

  const std::string library_;
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_DRIVER_H_
