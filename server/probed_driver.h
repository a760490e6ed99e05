// A driver whose library is first opened by another process. Vendors' libraries run inside the
// daemon without isolation, and on an unexpected machine, opening one may crash or hang the
// process.
#ifndef KILN_SERVER_PROBED_DRIVER_H_
#define KILN_SERVER_PROBED_DRIVER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/workers/process.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"

namespace kiln {

// Not thread-safe.
class ProbedDriver : public drivers::Driver {
 public:
  struct Options {
    // The command of a process that lists `driver`'s devices and exits with 0: the probe.
    std::vector<std::string> command;
    std::chrono::milliseconds time_max{30'000};  // its time limit
    drivers::SteadyClock now = std::chrono::steady_clock::now;
  };
  // Starts the probe and returns; the probe runs while other parts start.
  ProbedDriver(std::unique_ptr<drivers::Driver> driver, Options options);

  std::string name() const override { return driver_->name(); }
  // Returns no device if the probe failed or did not end in time. `driver` is then never used.
  absl::StatusOr<std::vector<std::unique_ptr<drivers::Device>>> Enumerate(
      std::string* why_none) override;

 private:
  // Waits for the probe. Returns why the driver must not be used; empty if it may be.
  std::string Judge() const;

  const std::unique_ptr<drivers::Driver> driver_;
  const Options options_;
  const absl::StatusOr<std::unique_ptr<workers::Process>> probe_;
  std::optional<std::string> verdict_;  // once it has been judged
};

// The work of a probe: lists the devices and ends the process.
[[noreturn]] void Probe(drivers::Driver& driver);

// Whether the dynamic linker may find a library of this name: it is in the linker's cache, or
// $LD_LIBRARY_PATH is set. Does not load the library.
bool MayBeInstalled(const std::string& soname);

}  // namespace kiln

#endif  // KILN_SERVER_PROBED_DRIVER_H_
