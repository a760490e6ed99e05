#include "drivers/cpu/driver.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/cpu/device.h"
#include "drivers/cpu/group_threads.h"
#include "drivers/cpu/host.h"

namespace kiln::drivers::cpu {
namespace {

absl::Status Check(const CpuOptions& options) {
  if (options.devices < 0)
    return absl::InvalidArgumentError(
        absl::StrCat(options.devices, " CPU devices were requested; use 0 or more"));
  if (options.threads_per_device < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.threads_per_device, " threads for each CPU device were requested; use 0 or more"));
  }
  if (options.memory_limit_bytes_per_device < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.memory_limit_bytes_per_device,
                     " bytes of memory for each CPU device were requested; use 0 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Device>>> CpuDriver::Enumerate(std::string* why_none) {
  if (absl::Status status = Check(options_); !status.ok()) return status;
  std::vector<std::unique_ptr<Device>> devices;
  if (options_.devices == 0) *why_none = "CPU devices are switched off in the configuration";
  // An explicit number of threads is not divided among devices.
  const int sharers = options_.threads_per_device > 0 ? 1 : std::max(1, options_.devices);
  // Called repeatedly by each device, because masks and limits may change.
  const auto all_cores = options_.cores ? options_.cores : [] { return AvailableCores(); };
  auto cores = [all_cores, sharers] { return std::max(1, all_cores() / sharers); };
  const int threads = options_.threads_per_device > 0 ? options_.threads_per_device : cores();
  absl::StatusOr<Target> target = DetectTarget(threads, options_.features);
  // UNIMPLEMENTED means that the processor is too old. That is not the user's mistake, so there is
  // just no device.
  if (!target.ok() && !absl::IsUnimplemented(target.status())) return target.status();
  if (!target.ok()) {
    *why_none = std::string(target.status().message());
    return devices;
  }
  std::shared_ptr<GroupThreads> group_threads;
  if (threads == 1 && options_.devices > all_cores())
    group_threads = std::make_shared<GroupThreads>(all_cores, options_.now);
  for (int i = 0; i < options_.devices; ++i) {
    DeviceInfo info;
    info.name = absl::StrCat("cpu:", i);
    info.model = ProcessorModel();
    info.is_host_processor = true;
    info.target = *target;
    // A quarter is left for the daemon itself and its clients' data in host memory.
    info.memory_bytes = AvailableMemory() / 4 * 3 / options_.devices;
    if (options_.memory_limit_bytes_per_device > 0)
      info.memory_bytes = std::min(info.memory_bytes, options_.memory_limit_bytes_per_device);
    devices.push_back(
        std::make_unique<CpuDevice>(std::move(info), cores, options_.now, group_threads));
  }
  return devices;
}

}  // namespace kiln::drivers::cpu
