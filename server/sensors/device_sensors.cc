#include "server/sensors/device_sensors.h"

#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/log/log.h"
#include "server/sensors/hwmon.h"

namespace kiln::sensors {
namespace {

bool HasSensors(const drivers::DeviceInfo& device) {
  return device.is_host_processor || !device.pci_address.empty();
}

bool IsEmpty(const Readings& readings) {
  return !readings.celsius && !readings.watts && !readings.clock_hertz;
}

}  // namespace

class DeviceSensors::Reader {
 public:
  explicit Reader(Options options) : options_(std::move(options)) {}

  bool has_work() const { return absl::c_any_of(options_.devices, HasSensors); }

  // The main function of the thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (ReadAll()) {
      absl::MutexLock lock(&mutex_);
      has_read_ = true;
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.interval)) break;
    }
    absl::MutexLock lock(&mutex_);
    has_ended_ = true;
  }

  // Returns whether the thread has ended, or does so at once.
  bool Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    return mutex_.AwaitWithTimeout(absl::Condition(&has_ended_), options_.patience);
  }

  Readings Of(const std::string& device) const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Time now = options_.steady_now();
    absl::MutexLock lock(&mutex_);
    const auto found = readings_.find(device);
    if (found == readings_.end() || now - found->second.time > options_.age_max) return {};
    return found->second.readings;
  }

  void WaitForReadings() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&has_read_));
  }

 private:
  struct Dated {
    Readings readings;
    absl::Time time;
  };

  // Returns false if it was stopped.
  bool ReadAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    for (const drivers::DeviceInfo& device : options_.devices) {
      if (!HasSensors(device)) continue;
      const Readings readings = Read(device);
      absl::MutexLock lock(&mutex_);
      // Stop may have given up waiting, and the clock may be gone.
      if (stopping_) return false;
      readings_[device.name] = {readings, options_.steady_now()};
    }
    return true;
  }

  Readings Read(const drivers::DeviceInfo& device) {
    if (device.is_host_processor) return ReadProcessors(options_.sysfs);
    Readings readings = ReadPciDevice(options_.sysfs, device.pci_address);
    if (!IsEmpty(readings)) return readings;
    if (!std::exchange(has_opened_nvml_, true)) {
      auto opened = OpenNvml(options_.nvml_library);
      if (opened.ok()) {
        nvml_ = *std::move(opened);
      } else {
        log::Info("no_sensors",
                  {{"device", device.name}, {"why", std::string(opened.status().message())}});
      }
    }
    return nvml_ == nullptr ? readings : nvml_->Read(device.pci_address);
  }

  const Options options_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_read_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Dated> readings_ ABSL_GUARDED_BY(mutex_);
  // Used by the thread only.
  std::unique_ptr<Nvml> nvml_;  // null until a device needs it, or if it is not installed
  bool has_opened_nvml_ = false;
};

DeviceSensors::DeviceSensors(Options options)
    : reader_(std::make_shared<Reader>(std::move(options))) {
  if (reader_->has_work()) thread_ = std::thread([reader = reader_] { reader->Run(); });
}

bool DeviceSensors::Stop() {
  if (!thread_.joinable()) return has_ended_ || !reader_->has_work();
  has_ended_ = reader_->Stop();
  if (has_ended_) {
    thread_.join();
  } else {
    thread_.detach();
    log::Warning("sensors_hang", {{"so", "the daemon ends without them"}});
  }
  return has_ended_;
}

Readings DeviceSensors::Of(const std::string& device) const { return reader_->Of(device); }

void DeviceSensors::WaitForReadings() const { reader_->WaitForReadings(); }

}  // namespace kiln::sensors
