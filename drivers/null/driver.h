// Devices that run nothing: for tests, for debugging, and the skeleton of a new driver.
#ifndef KILN_DRIVERS_NULL_DRIVER_H_
#define KILN_DRIVERS_NULL_DRIVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"

namespace kiln::drivers::null {

struct NullOptions {
  int devices = 1;
  int64_t memory_bytes_per_device = int64_t{1} << 30;
  // Returns OK, or why devices are lost. From the first error on they are lost until they are
  // revived. Thread-safe; a list calls it when it begins and before each kernel.
  std::function<absl::Status()> fault = [] { return absl::OkStatus(); };
  SteadyClock now = std::chrono::steady_clock::now;
};

class NullDriver : public Driver {
 public:
  explicit NullDriver(NullOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "null"; }
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) override;

 private:
  const NullOptions options_;
};

}  // namespace kiln::drivers::null

#endif  // KILN_DRIVERS_NULL_DRIVER_H_
