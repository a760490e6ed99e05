// The CPU as one device, or as several.
#ifndef KILN_DRIVERS_CPU_DRIVER_H_
#define KILN_DRIVERS_CPU_DRIVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"

namespace kiln::drivers::cpu {

struct CpuOptions {
  int devices = 1;
  // 0: the cores of the process's affinity mask, or as many as its control group's limit leaves,
  // shared evenly, at least one for each device. Of a larger number no more run at once than the
  // process may use cores.
  int threads_per_device = 0;
  // The most of the machine's or the control group's memory that a device takes, with what it keeps
  // for reuse. All devices together take three quarters of it at most; 0: as much as that.
  int64_t memory_limit_bytes_per_device = 0;
  // As ChooseInstructions takes them; empty: all that the processor has.
  std::string features = {};
  // How many cores the process may use, from now on; null: as the system says.
  std::function<int()> cores = nullptr;
  SteadyClock now = std::chrono::steady_clock::now;
};

class CpuDriver : public Driver {
 public:
  explicit CpuDriver(CpuOptions options) : options_(options) {}

  std::string name() const override { return "cpu"; }
  // INVALID_ARGUMENT: the options make no sense. FAILED_PRECONDITION: the processor lacks
  // `features`.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) override;

 private:
  const CpuOptions options_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_DRIVER_H_
