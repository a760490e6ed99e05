#include "drivers/level_zero/driver.h"

#include "drivers/level_zero/device.h"
#include "drivers/level_zero/device_query.h"
#include "drivers/level_zero/library.h"
#include "drivers/level_zero/module_builder.h"

namespace kiln::drivers::level_zero {

LevelZeroDriver::LevelZeroDriver(const LevelZeroOptions& options)
    : VendorDriver({.vendor = "Level Zero",
                    .memory_limit_bytes_per_device = options.memory_limit_bytes_per_device,
                    .sharing_host_memory = options.sharing_host_memory,
                    .now = options.now}),
      library_(options.library) {}

absl::StatusOr<std::vector<VendorDriver::Openable>> LevelZeroDriver::Find() {
  const auto ze = Library::Open(library_);
  if (!ze.ok()) return ze.status();
  const auto devices = QueryDevices(**ze);
  if (!devices.ok()) return devices.status();
  std::vector<Openable> found;
  for (const DeviceFacts& facts : *devices)
    found.push_back({facts, [ze = *ze, facts] { return LevelZeroDevice::Open(ze, facts); }});
  return found;
}

absl::StatusOr<std::unique_ptr<KernelBuilder>> LevelZeroDriver::OpenBuilder() {
  return ModuleBuilder::Open(library_);
}

}  // namespace kiln::drivers::level_zero
