// Reads the sensors of the daemon's devices at intervals, on a thread of its own: a scrape must not
// wait for hardware that hangs.
#ifndef KILN_SERVER_SENSORS_DEVICE_SENSORS_H_
#define KILN_SERVER_SENSORS_DEVICE_SENSORS_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "drivers/interface/device.h"
#include "server/sensors/nvml.h"
#include "server/sensors/readings.h"

namespace kiln::sensors {

// Thread-safe.
class DeviceSensors {
 public:
  struct Options {
    std::vector<drivers::DeviceInfo> devices;
    std::function<absl::Time()> steady_now;
    std::string sysfs = "/sys";
    std::string nvml_library = kNvmlLibrary;
    absl::Duration interval = absl::Seconds(10);
    // Readings that are older are not returned: the hardware hangs.
    absl::Duration age_max = absl::Minutes(1);
    // How long Stop waits for a reading that is under way.
    absl::Duration patience = absl::Seconds(2);
  };
  // Starts the thread. Devices without known sensors are never read.
  explicit DeviceSensors(Options options);
  ~DeviceSensors() { Stop(); }
  DeviceSensors(const DeviceSensors&) = delete;
  DeviceSensors& operator=(const DeviceSensors&) = delete;

  // Reads nothing any more. Returns whether the thread has ended. If not, it is within a vendor's
  // library that hangs, of which the process cannot be sure to unload it: end it with _exit(2).
  // Calls nothing of the options afterwards. Idempotent.
  bool Stop();

  // The last readings of a device; empty if there are none.
  Readings Of(const std::string& device) const;
  // Waits until all devices have been read once; for tests.
  void WaitForReadings() const;

 private:
  class Reader;

  // Shared with the thread, which outlives this object if the hardware hangs.
  const std::shared_ptr<Reader> reader_;
  std::thread thread_;
  bool has_ended_ = false;  // after Stop
};

}  // namespace kiln::sensors

#endif  // KILN_SERVER_SENSORS_DEVICE_SENSORS_H_
