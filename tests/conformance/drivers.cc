// The list of drivers. A new driver adds a row.
#include "drivers/cpu/driver.h"
#include "drivers/null/driver.h"
#include "tests/conformance/driver_case.h"

namespace kiln::conformance {
namespace {

// Small enough that the suite can exhaust it.
constexpr int64_t kMemory = int64_t{64} << 20;

std::unique_ptr<drivers::Driver> MakeNull() {
  return std::make_unique<drivers::null::NullDriver>(
      drivers::null::NullOptions{.devices = 2, .memory_bytes_per_device = kMemory});
}

std::unique_ptr<drivers::Driver> MakeCpu(int devices, int threads, const char* features = "") {
  return std::make_unique<drivers::cpu::CpuDriver>(
      drivers::cpu::CpuOptions{.devices = devices,
                               .threads_per_device = threads,
                               .memory_limit_bytes_per_device = kMemory,
                               .features = features});
}

}  // namespace

const char* Name(Feature feature) {
  switch (feature) {
    case Feature::kKernels:
      return "kernels";
    case Feature::kTwoDevices:
      return "two devices";
    case Feature::kMemoryLimit:
      return "memory limit";
  }
  return "unknown";
}

std::string DriverCase::WhyNot(Feature feature) const {
  for (const Unsupported& row : unsupported) {
    if (row.feature == feature) return row.reason;
  }
  return "";
}

std::vector<DriverCase> AllDriverCases() {
  return {
      {.name = "null",
       .make = MakeNull,
       .kernels = nullptr,
       .unsupported = {{Feature::kKernels, "kernels of the null architecture do nothing"}}},
      {.name = "cpu_one_thread",
       .make = [] { return MakeCpu(1, 1); },
       .kernels = MakeX86Kernels,
       .unsupported = {{Feature::kTwoDevices,
                        "configured with one device; cpu_two_devices has two"}}},
      {.name = "cpu_four_threads",
       .make = [] { return MakeCpu(1, 4); },
       .kernels = MakeX86Kernels,
       .unsupported = {{Feature::kTwoDevices,
                        "configured with one device; cpu_two_devices has two"}}},
      {.name = "cpu_four_lanes",
       .make = [] { return MakeCpu(1, 2, "sse4.2"); },
       .kernels = MakeX86Kernels,
       .unsupported = {{Feature::kTwoDevices,
                        "configured with one device; cpu_two_devices has two"}}},
      {.name = "cpu_two_devices",
       .make = [] { return MakeCpu(2, 2); },
       .kernels = MakeX86Kernels,
       .unsupported = {}},
  };
}

}  // namespace kiln::conformance
