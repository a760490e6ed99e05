#include "server/daemon_parts.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "drivers/cpu/host.h"
#include "drivers/null/driver.h"

namespace kiln {

namespace {

constexpr int kMostNullDevices = 64;
// Of the machine's memory, what null devices have together.
constexpr int64_t kNullShare = 4;

// As many as the highest number that is named asks for: "null" and "null:0" are one, "null:2"
// three.
int NullDevices(const std::vector<std::string>& wanted) {
  int devices = 0;
  for (absl::string_view name : wanted) {
    if (!absl::ConsumePrefix(&name, "null")) continue;
    int number = 0;
    if (!name.empty() && !(absl::ConsumePrefix(&name, ":") && absl::SimpleAtoi(name, &number))) {
      continue;
    }
    if (number >= 0 && number < kMostNullDevices) devices = std::max(devices, number + 1);
  }
  return devices;
}

// All devices are wanted if none is named.
bool WantsCpu(const std::vector<std::string>& wanted) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [](const std::string& name) {
           return absl::StartsWith(name, "cpu");
         });
}

}  // namespace

DaemonParts ProductionParts(const config::Config& config) {
  DaemonParts parts;
  if (config.cpu_devices > 0 && WantsCpu(config.devices)) {
    drivers::cpu::CpuOptions options;
    options.devices = config.cpu_devices;
    options.threads_per_device = config.cpu_threads;
    options.memory_limit_bytes_per_device = config.memory_limit_bytes;
    options.features = config.cpu_features;
    options.now = std::chrono::steady_clock::now;
    parts.drivers.push_back(std::make_unique<drivers::cpu::CpuDriver>(options));
  }
  if (const int devices = NullDevices(config.devices); devices > 0) {
    drivers::null::NullOptions options;
    options.devices = devices;
    options.memory_bytes_per_device = drivers::cpu::AvailableMemory() / kNullShare / devices;
    if (config.memory_limit_bytes > 0) {
      options.memory_bytes_per_device =
          std::min(options.memory_bytes_per_device, config.memory_limit_bytes);
    }
    options.now = std::chrono::steady_clock::now;
    parts.drivers.push_back(std::make_unique<drivers::null::NullDriver>(options));
  }
  parts.memory_bytes = drivers::cpu::AvailableMemory();
  parts.compile = compiler::Compile;
  parts.disassemble = compiler::Disassemble;
  parts.now = absl::Now;
  return parts;
}

}  // namespace kiln
