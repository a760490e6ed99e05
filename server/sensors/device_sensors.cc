#include "server/sensors/device_sensors.h"

#include <algorithm>
#include <utility>

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

DeviceSensors::DeviceSensors(Options options) : options_(std::move(options)) {
  const auto& devices = options_.devices;
  if (std::any_of(devices.begin(), devices.end(), HasSensors))
    thread_ = std::thread([this] { Run(); });
}

DeviceSensors::~DeviceSensors() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void DeviceSensors::Run() {
  while (true) {
    ReadAll();
    absl::MutexLock lock(&mutex_);
    has_read_ = true;
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.interval)) return;
  }
}

Readings DeviceSensors::Read(const drivers::DeviceInfo& device) {
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

void DeviceSensors::ReadAll() {
  for (const drivers::DeviceInfo& device : options_.devices) {
    if (!HasSensors(device)) continue;
    const Readings readings = Read(device);
    const absl::Time now = options_.steady_now();
    absl::MutexLock lock(&mutex_);
    readings_[device.name] = {readings, now};
  }
}

Readings DeviceSensors::Of(const std::string& device) const {
  const absl::Time now = options_.steady_now();
  absl::MutexLock lock(&mutex_);
  const auto found = readings_.find(device);
  if (found == readings_.end() || now - found->second.time > options_.age_max) return {};
  return found->second.readings;
}

void DeviceSensors::WaitForReadings() const {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&has_read_));
}

}  // namespace kiln::sensors
