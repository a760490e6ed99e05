// The part of libnvidia-ml.so.1 that Kiln calls: a GPU at 0001:3b:00.0, one at 0001:3c:00.0 that is
// lost, and one at 0001:3e:00.0 for which each call waits at a gate.
#include <cstring>

#include "tests/stand_ins/gate.h"

namespace {

constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kNotFound = 6;
constexpr int kGpuIsLost = 15;

bool is_initialized = false;
int works = 1, is_lost = 2;
kiln::stand_ins::Gate gate;

int Give(void* device, unsigned value, unsigned* to) {
  if (!is_initialized) return kUninitialized;
  if (device == &is_lost) return kGpuIsLost;
  *to = value;
  return kSuccess;
}

}  // namespace

extern "C" {

kiln::stand_ins::Gate* KilnNvmlStandInGate() { return &gate; }

int nvmlInit_v2() {
  is_initialized = true;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  if (!is_initialized) return kUninitialized;
  if (std::strcmp(address, "0001:3b:00.0") == 0) {
    *device = &works;
  } else if (std::strcmp(address, "0001:3c:00.0") == 0) {
    *device = &is_lost;
  } else if (std::strcmp(address, "0001:3e:00.0") == 0) {
    gate.Pass();
    *device = &works;
  } else {
    return kNotFound;
  }
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  return sensor == 0 ? Give(device, 61, celsius) : kNotFound;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return Give(device, 217'500, milliwatts);
}

int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* megahertz) {
  return clock == 1 ? Give(device, 1410, megahertz) : kNotFound;
}

}  // extern "C"
