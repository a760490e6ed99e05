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
#include "compiler/workers/worker.h"
#include "drivers/cpu/driver.h"
#include "drivers/cpu/host.h"
#include "drivers/cuda/driver.h"
#include "drivers/null/driver.h"
#include "drivers/opencl/driver.h"

namespace kiln {

namespace {

constexpr int kMostNullDevices = 64;
// Of the machine's memory, what null devices have together.
constexpr int64_t kNullShare = 4;

// As many as the highest number that is named asks for: "null" and "null:0" are one, "null:2"
// three. INVALID_ARGUMENT for a number that no null device has.
absl::StatusOr<int> NullDevices(const std::vector<std::string>& wanted) {
  int devices = 0;
  for (const std::string& name : wanted) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, "null")) continue;
    int number = 0;
    const bool is_one =
        rest.empty() || (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &number) &&
                         number >= 0 && number < kMostNullDevices);
    if (!is_one) {
      return absl::InvalidArgumentError(
          absl::StrCat("devices: there is no \"", name,
                       "\"; give null, or null:0 to null:", kMostNullDevices - 1));
    }
    devices = std::max(devices, number + 1);
  }
  return devices;
}

// "cpu", or "cpu:0" and the like, for the kind "cpu".
bool NamesOneOf(const std::vector<std::string>& wanted, absl::string_view kind) {
  return std::any_of(wanted.begin(), wanted.end(), [kind](const std::string& name) {
    return name == kind || absl::StartsWith(name, absl::StrCat(kind, ":"));
  });
}

// All devices are wanted if none is named.
bool Wants(const std::vector<std::string>& wanted, absl::string_view kind) {
  return wanted.empty() || NamesOneOf(wanted, kind);
}

}  // namespace

absl::StatusOr<DaemonParts> ProductionParts(const config::Config& config) {
  const auto null_devices = NullDevices(config.devices);
  if (!null_devices.ok()) return null_devices.status();
  DaemonParts parts;
  if (config.cpu_devices > 0 && Wants(config.devices, "cpu")) {
    drivers::cpu::CpuOptions options;
    options.devices = config.cpu_devices;
    options.threads_per_device = config.cpu_threads;
    options.memory_limit_bytes_per_device = config.memory_limit_bytes;
    options.features = config.cpu_features;
    options.now = std::chrono::steady_clock::now;
    parts.drivers.push_back(std::make_unique<drivers::cpu::CpuDriver>(options));
  }
  if (*null_devices > 0) {
    drivers::null::NullOptions options;
    options.devices = *null_devices;
    options.memory_bytes_per_device = drivers::cpu::AvailableMemory() / kNullShare / *null_devices;
    if (config.memory_limit_bytes > 0) {
      options.memory_bytes_per_device =
          std::min(options.memory_bytes_per_device, config.memory_limit_bytes);
    }
    options.now = std::chrono::steady_clock::now;
    parts.drivers.push_back(std::make_unique<drivers::null::NullDriver>(options));
  }
  if (Wants(config.devices, "cuda")) {
    drivers::cuda::CudaOptions options;
    options.memory_limit_bytes_per_device = config.memory_limit_bytes;
    options.now = std::chrono::steady_clock::now;
    parts.drivers.push_back(std::make_unique<drivers::cuda::CudaDriver>(options));
  }
  if (Wants(config.devices, "opencl")) {
    drivers::opencl::OpenClOptions options;
    options.sharing_host_memory = NamesOneOf(config.devices, "opencl");
    options.memory_limit_bytes_per_device = config.memory_limit_bytes;
    options.now = std::chrono::steady_clock::now;
    parts.drivers.push_back(std::make_unique<drivers::opencl::OpenClDriver>(options));
  }
  parts.memory_bytes = drivers::cpu::AvailableMemory();
  parts.compile = compiler::Compile;
  parts.disassemble = compiler::Disassemble;
  parts.compile_worker = workers::WorkerCommand(config.compile_memory_limit_bytes);
  parts.now = absl::Now;
  return parts;
}

}  // namespace kiln
