// The GPUs that Level Zero's drivers find, which are Intel's.
#ifndef KILN_DRIVERS_LEVEL_ZERO_DRIVER_H_
#define KILN_DRIVERS_LEVEL_ZERO_DRIVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"

namespace kiln::drivers::level_zero {

class ModuleBuilder;

struct LevelZeroOptions {
  // Also offer integrated GPUs, which use the host's memory: the devices' memory limits then add up
  // to more than there is.
  bool sharing_host_memory = false;
  // 0: seven eighths of a device's own memory, half of one that it shares with the host.
  int64_t memory_limit_bytes_per_device = 0;
  std::string library = "libze_loader.so.1";
  SteadyClock now = std::chrono::steady_clock::now;
};

// Loads Intel's code into the process; a crash in it is a crash of the process.
class LevelZeroDriver : public Driver {
 public:
  explicit LevelZeroDriver(LevelZeroOptions options);
  ~LevelZeroDriver() override;

  std::string name() const override { return "level_zero"; }
  // A device's number is its position among all devices of the machine, offered or not.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) override;
  absl::StatusOr<KernelImage> Finish(const KernelImage& image, const Finisher& finisher) override;

 private:
  const LevelZeroOptions options_;
  std::unique_ptr<ModuleBuilder> builder_;  // created by the first Finish
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_DRIVER_H_
