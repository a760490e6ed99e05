#include "server/open_devices.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/log/log.h"

namespace kiln {
namespace {

// "cpu:0" names that device, "cpu" all devices of that kind.
bool Names(const std::string& entry, const std::string& device) {
  return device == entry || absl::StartsWith(device, absl::StrCat(entry, ":"));
}

absl::Status NoDevices(const std::vector<std::string>& missing,
                       const std::vector<std::string>& why) {
  std::string message = "no device was found";
  if (!missing.empty()) absl::StrAppend(&message, " named ", absl::StrJoin(missing, ", "));
  if (!why.empty()) absl::StrAppend(&message, "; ", absl::StrJoin(why, "; "));
  return absl::FailedPreconditionError(message);
}

fairness::QueueLimits LimitsOf(const config::Config& config) {
  fairness::QueueLimits limits;
  limits.slice_seconds = config.slice_milliseconds == 0 ? std::numeric_limits<double>::infinity()
                                                        : config.slice_milliseconds / 1e3;
  return limits;
}

}  // namespace

absl::StatusOr<OpenedDevices> OpenDevices(const config::Config& config,
                                          std::vector<std::unique_ptr<drivers::Driver>> drivers,
                                          metrics::Metrics& metrics,
                                          trace::Recorder& trace_recorder, const Clock& clock) {
  OpenedDevices opened;
  std::vector<std::string> why;
  for (const auto& driver : drivers) {
    runtime::DriverReport report;
    report.driver = driver->name();
    auto found = driver->Enumerate(&report.why_not_more);
    if (!found.ok()) return found.status();
    if (!report.why_not_more.empty())
      why.push_back(absl::StrCat(report.driver, ": ", report.why_not_more));
    for (auto& device : *found) {
      const std::string name = device->info().name;
      const bool wanted = config.devices.empty() ||
                          std::any_of(config.devices.begin(), config.devices.end(),
                                      [&](const std::string& entry) { return Names(entry, name); });
      if (!wanted) {
        why.push_back(absl::StrCat(name, " was not requested"));
        absl::StrAppend(&report.why_not_more, report.why_not_more.empty() ? "" : ", ", why.back());
        continue;
      }
      ++report.devices;
      opened.devices.push_back(std::make_unique<runtime::ManagedDevice>(
          std::move(device), config.memory_limit_bytes, metrics.ForDevice(name), clock,
          LimitsOf(config), &trace_recorder));
      const drivers::DeviceInfo& info = opened.devices.back()->info();
      log::Info("device",
                {{"device", name}, {"model", info.model}, {"target", info.target.Summary()}});
    }
    log::Info("driver", {{"driver", report.driver},
                         {"devices", absl::StrCat(report.devices)},
                         {"why_not_more", report.why_not_more}});
    opened.reports.push_back(std::move(report));
  }
  // An entry that matches no device is an error even if other entries match.
  std::vector<std::string> missing;
  for (const std::string& entry : config.devices) {
    const bool is_there =
        std::any_of(opened.devices.begin(), opened.devices.end(),
                    [&](const auto& device) { return Names(entry, device->name()); });
    if (!is_there) missing.push_back(entry);
  }
  if (opened.devices.empty() || !missing.empty()) return NoDevices(missing, why);
  return opened;
}

}  // namespace kiln
