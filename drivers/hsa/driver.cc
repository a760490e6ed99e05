#include "drivers/hsa/driver.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "drivers/hsa/device.h"
#include "drivers/hsa/device_query.h"
#include "drivers/hsa/library.h"

namespace kiln::drivers::hsa {
namespace {

absl::StatusOr<std::unique_ptr<HsaDevice>> OpenHsaDevice(const std::shared_ptr<const Library>& hsa,
                                                         const DeviceFacts& facts,
                                                         const std::string& name,
                                                         const std::vector<hsa_agent_t>& peers,
                                                         const HsaOptions& options) {
  if (!facts.usable.ok()) return facts.usable;
  DeviceInfo info;
  info.name = name;
  info.model = facts.model;
  info.target = facts.target;
  // The rest is for queues, code and other programs.
  info.memory_bytes = facts.memory_bytes / 8 * 7;
  if (options.memory_limit_bytes_per_device > 0)
    info.memory_bytes = std::min(info.memory_bytes, options.memory_limit_bytes_per_device);
  return HsaDevice::Make(hsa, facts, std::move(info), peers, options.now);
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Device>>> HsaDriver::Enumerate(std::string* why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  if (options_.memory_limit_bytes_per_device < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.memory_limit_bytes_per_device,
                     " bytes of memory for each HSA device were requested; use 0 or more"));
  }
  const auto hsa = Library::Open(options_.library);
  if (!hsa.ok()) {
    *why_none = std::string(hsa.status().message());
    return devices;
  }
  const auto found = QueryDevices(**hsa);
  if (!found.ok()) {
    *why_none = std::string(found.status().message());
    return devices;
  }
  std::vector<hsa_agent_t> peers;
  for (const DeviceFacts& facts : *found) {
    if (facts.usable.ok()) peers.push_back(facts.agent);
  }
  std::vector<std::string> left_out;
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string name = absl::StrCat("hsa:", i);
    auto device = OpenHsaDevice(*hsa, (*found)[i], name, peers, options_);
    if (!device.ok()) {
      left_out.push_back(
          absl::StrCat(name, " (", (*found)[i].model, ") ", device.status().message()));
      continue;
    }
    devices.push_back(*std::move(device));
  }
  *why_none = absl::StrJoin(left_out, ", ");
  return devices;
}

}  // namespace kiln::drivers::hsa
