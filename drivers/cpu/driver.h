// The CPU as one device or several.
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
  // 0: the cores of the process's affinity mask, or fewer if its control group's limit is lower,
  // divided evenly, at least one per device. With a larger number, no more threads run at once than
  // the process may use cores.
  int threads_per_device = 0;
  // The most memory of the machine or the control group that a device uses, including its cache.
  // All devices together use at most three quarters of that memory; 0: an equal share of that.
  int64_t memory_limit_bytes_per_device = 0;
  // In the syntax of ChooseInstructions; empty: all features of the processor.
  std::string features = {};
  // The number of cores that the process may use, asked for repeatedly; null: ask the system.
  std::function<int()> cores = nullptr;
  SteadyClock now = std::chrono::steady_clock::now;
};

class CpuDriver : public Driver {
 public:
  explicit CpuDriver(CpuOptions options) : options_(options) {}

  std::string name() const override { return "cpu"; }
  // INVALID_ARGUMENT: the options are contradictory or malformed. FAILED_PRECONDITION: the
  // processor lacks `features`.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) override;

 private:
  const CpuOptions options_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_DRIVER_H_
