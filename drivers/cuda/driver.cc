#include "drivers/cuda/driver.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "drivers/cuda/device.h"
#include "drivers/cuda/device_query.h"
#include "drivers/cuda/library.h"

namespace kiln::drivers::cuda {
namespace {

absl::StatusOr<std::unique_ptr<CudaDevice>> OpenCudaDevice(
    const std::shared_ptr<const Library>& cuda, const DeviceFacts& facts, const std::string& name,
    const std::shared_ptr<PeerAccess>& peers, const CudaOptions& options) {
  if (!facts.usable.ok()) return facts.usable;
  DeviceInfo info;
  info.name = name;
  info.model = facts.model;
  info.target = facts.target;
  // The rest is for contexts, code and other programs.
  info.memory_bytes = facts.memory_bytes / 8 * 7;
  if (options.memory_limit_bytes_per_device > 0)
    info.memory_bytes = std::min(info.memory_bytes, options.memory_limit_bytes_per_device);
  return CudaDevice::Make(cuda, facts.device, std::move(info), peers, options.now);
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Device>>> CudaDriver::Enumerate(std::string* why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  if (options_.memory_limit_bytes_per_device < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.memory_limit_bytes_per_device,
                     " bytes of memory for each CUDA device were requested; use 0 or more"));
  }
  const auto cuda = Library::Open(options_.library);
  if (!cuda.ok()) {
    *why_none = std::string(cuda.status().message());
    return devices;
  }
  const auto found = QueryDevices(**cuda);
  if (!found.ok()) {
    *why_none = std::string(found.status().message());
    return devices;
  }
  const auto peers = std::make_shared<PeerAccess>();
  std::vector<std::string> left_out;
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string name = absl::StrCat("cuda:", i);
    auto device = OpenCudaDevice(*cuda, (*found)[i], name, peers, options_);
    if (!device.ok()) {
      left_out.push_back(
          absl::StrCat(name, " (", (*found)[i].model, ") ", device.status().message()));
      continue;
    }
    devices.push_back(*std::move(device));
  }
  *why_none = absl::StrJoin(left_out, ", ");
  return devices;
}

}  // namespace kiln::drivers::cuda
