#include "drivers/hsa/driver.h"

#include "drivers/hsa/device.h"
#include "drivers/hsa/device_query.h"
#include "drivers/hsa/library.h"

namespace kiln::drivers::hsa {

HsaDriver::HsaDriver(const HsaOptions& options)
    : VendorDriver({.vendor = "HSA",
                    .memory_limit_bytes_per_device = options.memory_limit_bytes_per_device,
                    .now = options.now}),
      library_(options.library) {}

absl::StatusOr<std::vector<VendorDriver::Openable>> HsaDriver::Find() {
  const auto hsa = Library::Open(library_);
  if (!hsa.ok()) return hsa.status();
  const auto devices = QueryDevices(**hsa);
  if (!devices.ok()) return devices.status();
  std::vector<hsa_agent_t> peers;
  for (const DeviceFacts& facts : *devices) {
    if (facts.usable.ok()) peers.push_back(facts.agent);
  }
  std::vector<Openable> found;
  for (const DeviceFacts& facts : *devices)
    found.push_back(
        {facts, [hsa = *hsa, facts, peers] { return HsaDevice::Open(hsa, facts, peers); }});
  return found;
}

}  // namespace kiln::drivers::hsa
