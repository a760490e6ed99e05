// The devices that a daemon offers.
#ifndef KILN_SERVER_OPEN_DEVICES_H_
#define KILN_SERVER_OPEN_DEVICES_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "drivers/interface/driver.h"
#include "server/clock/clock.h"
#include "server/config/config.h"
#include "server/metrics/metrics.h"
#include "server/runtime/device/driver_report.h"
#include "server/runtime/device/managed_device.h"
#include "server/trace/recorder.h"

namespace kiln {

using Devices = std::vector<std::unique_ptr<runtime::ManagedDevice>>;

struct OpenedDevices {
  Devices devices;
  std::vector<runtime::DriverReport> reports;  // of each driver, in order
};

// Returns the drivers' devices that the configuration selects; `metrics` and `trace_recorder` must
// outlive them.
// FAILED_PRECONDITION if one is missing or there is none: the message says why.
absl::StatusOr<OpenedDevices> OpenDevices(const config::Config& config,
                                          std::vector<std::unique_ptr<drivers::Driver>> drivers,
                                          metrics::Metrics& metrics,
                                          trace::Recorder& trace_recorder, const Clock& clock);

}  // namespace kiln

#endif  // KILN_SERVER_OPEN_DEVICES_H_
