// The list of drivers that open a vendor's library. A new one adds a row to vendor_drivers.cc.
#ifndef KILN_DRIVERS_VENDOR_DRIVERS_H_
#define KILN_DRIVERS_VENDOR_DRIVERS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"

namespace kiln::drivers {

// Each driver takes what it has a use for.
struct VendorDriverOptions {
  // Also offer devices that use the host's memory: the devices' memory limits then add up to more
  // than there is.
  bool sharing_host_memory = false;
  // 0: seven eighths of a device's own memory, half of one that it shares with the host.
  int64_t memory_limit_bytes_per_device = 0;
  // OpenCL: offer only devices of platforms whose name contains this; "": all.
  std::string platform = {};
  // OpenCL: as OpenClOptions::on_broken_command_buffers.
  std::function<void(const std::string& device, const absl::Status& why)>
      on_broken_command_buffers = {};
  SteadyClock now = std::chrono::steady_clock::now;
};

struct VendorDriverRow {
  absl::string_view name;
  std::string library;  // what it opens
  std::unique_ptr<Driver> (*make)(const VendorDriverOptions& options);
};
absl::Span<const VendorDriverRow> VendorDrivers();

// Null if no row has this name.
std::unique_ptr<Driver> MakeVendorDriver(absl::string_view name,
                                         const VendorDriverOptions& options);

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_VENDOR_DRIVERS_H_
