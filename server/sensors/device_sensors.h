// Reads the sensors of the daemon's devices at intervals, on a thread of its own: a scrape must not
// wait for hardware that hangs.
#ifndef KILN_SERVER_SENSORS_DEVICE_SENSORS_H_
#define KILN_SERVER_SENSORS_DEVICE_SENSORS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
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
  };
  // Starts the thread. Devices without known sensors are never read.
  explicit DeviceSensors(Options options);
  // Waits for the reading under way.
  ~DeviceSensors();

  // The last readings of a device; empty if there are none.
  Readings Of(const std::string& device) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until all devices have been read once; for tests.
  void WaitForReadings() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Dated {
    Readings readings;
    absl::Time time;
  };
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReadAll() ABSL_LOCKS_EXCLUDED(mutex_);
  Readings Read(const drivers::DeviceInfo& device);

  const Options options_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_read_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Dated> readings_ ABSL_GUARDED_BY(mutex_);
  // Used by the thread only.
  std::unique_ptr<Nvml> nvml_;  // null until a device needs it, or if it is not installed
  bool has_opened_nvml_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace kiln::sensors

#endif  // KILN_SERVER_SENSORS_DEVICE_SENSORS_H_
