#include "server/open_devices.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/log/log.h"

namespace kiln {
namespace {

// "cpu:0" names that device, "cpu" all of its kind.
bool Names(const std::string& entry, const std::string& device) {
  return device == entry || absl::StartsWith(device, absl::StrCat(entry, ":"));
}

absl::Status NoDevices(const std::vector<std::string>& missing,
                       const std::vector<std::string>& why) {
  std::string message = "there is no device";
  if (!missing.empty()) absl::StrAppend(&message, " named ", absl::StrJoin(missing, ", "));
  if (!why.empty()) absl::StrAppend(&message, "; ", absl::StrJoin(why, "; "));
  return absl::FailedPreconditionError(message);
}

}  // namespace

absl::StatusOr<Devices> OpenDevices(const config::Config& config,
                                    std::vector<std::unique_ptr<drivers::Driver>> drivers,
                                    metrics::Metrics& metrics,
                                    const std::function<absl::Time()>& now) {
  Devices devices;
  std::vector<std::string> why;
  for (const auto& driver : drivers) {
    std::string why_none;
    auto found = driver->Enumerate(&why_none);
    if (!found.ok()) return found.status();
    if (!why_none.empty()) why.push_back(absl::StrCat(driver->name(), ": ", why_none));
    log::Info("driver", {{"driver", driver->name()},
                         {"devices", absl::StrCat(found->size())},
                         {"why_not_more", why_none}});
    for (auto& device : *found) {
      const std::string name = device->info().name;
      const bool wanted = config.devices.empty() ||
                          std::any_of(config.devices.begin(), config.devices.end(),
                                      [&](const std::string& entry) { return Names(entry, name); });
      if (!wanted) {
        why.push_back(absl::StrCat(name, " is not asked for"));
        continue;
      }
      devices.push_back(std::make_unique<runtime::ManagedDevice>(
          std::move(device), config.memory_limit_bytes, metrics.ForDevice(name), now));
      const drivers::DeviceInfo& info = devices.back()->info();
      log::Info("device",
                {{"device", name}, {"model", info.model}, {"target", info.target.Summary()}});
    }
  }
  // An entry that names no device is a mistake even if other entries do.
  std::vector<std::string> missing;
  for (const std::string& entry : config.devices) {
    const bool is_there = std::any_of(devices.begin(), devices.end(), [&](const auto& device) {
      return Names(entry, device->name());
    });
    if (!is_there) missing.push_back(entry);
  }
  if (devices.empty() || !missing.empty()) return NoDevices(missing, why);
  return devices;
}

}  // namespace kiln
