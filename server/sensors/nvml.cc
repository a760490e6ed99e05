#include "server/sensors/nvml.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "drivers/common/dynamic_library.h"

namespace kiln::sensors {
namespace {

// The part of NVML's interface that is used; its functions and numbers never change. Source: "NVML
// API Reference Guide", NVIDIA.
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlTemperatureGpu = 0;
constexpr int kNvmlClockSm = 1;

class NvmlTable : public drivers::FunctionTable {
 public:
  using FunctionTable::FunctionTable;

  int (*Init)() = Find("nvmlInit_v2");
  int (*HandleByPciBusId)(const char* address,
                          NvmlDevice* device) = Find("nvmlDeviceGetHandleByPciBusId_v2");
  int (*Temperature)(NvmlDevice device, int sensor,
                     unsigned* celsius) = Find("nvmlDeviceGetTemperature");
  int (*PowerUsage)(NvmlDevice device, unsigned* milliwatts) = Find("nvmlDeviceGetPowerUsage");
  int (*ClockInfo)(NvmlDevice device, int clock,
                   unsigned* megahertz) = Find("nvmlDeviceGetClockInfo");
};

class OpenedNvml : public Nvml {
 public:
  explicit OpenedNvml(std::shared_ptr<NvmlTable> nvml) : nvml_(std::move(nvml)) {}

  Readings Read(const std::string& pci_address) override {
    NvmlDevice device = nullptr;
    if (nvml_->HandleByPciBusId(pci_address.c_str(), &device) != kNvmlSuccess) return {};
    Readings readings;
    unsigned value = 0;
    if (nvml_->Temperature(device, kNvmlTemperatureGpu, &value) == kNvmlSuccess)
      readings.celsius = value;
    if (nvml_->PowerUsage(device, &value) == kNvmlSuccess) readings.watts = value / 1e3;
    if (nvml_->ClockInfo(device, kNvmlClockSm, &value) == kNvmlSuccess)
      readings.clock_hertz = value * 1e6;
    return readings;
  }

 private:
  const std::shared_ptr<NvmlTable> nvml_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Nvml>> OpenNvml(const std::string& library) {
  auto table = drivers::OpenTable<NvmlTable>(library, "NVIDIA's management library",
                                             "it comes with NVIDIA's driver");
  if (!table.ok()) return table.status();
  if (const int code = (*table)->Init(); code != kNvmlSuccess)
    return absl::UnavailableError(absl::StrCat("NVML finds no driver (error ", code, ")"));
  return std::make_unique<OpenedNvml>(*std::move(table));
}

}  // namespace kiln::sensors
