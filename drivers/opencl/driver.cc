#include "drivers/opencl/driver.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "drivers/opencl/device.h"
#include "drivers/opencl/device_query.h"
#include "drivers/opencl/library.h"
#include "drivers/opencl/program_builder.h"

namespace kiln::drivers::opencl {
namespace {

int64_t MemoryOf(const DeviceFacts& facts, int64_t limit) {
  // The rest is for the daemon, the CPU device and other programs.
  const int64_t part =
      facts.shares_host_memory ? facts.memory_bytes / 2 : facts.memory_bytes / 8 * 7;
  return limit > 0 ? std::min(part, limit) : part;
}

// PoCL's command buffers are experimental on all devices: some runs with them did not end.
bool CommandBuffersHelp(const DeviceFacts& facts) {
  return !facts.is_cpu && !absl::StrContains(facts.platform, "Portable Computing");
}

OpenClDevice::CommandBufferUse UseOf(const DeviceFacts& facts, const std::string& name,
                                     const OpenClOptions& options) {
  OpenClDevice::CommandBufferUse use;
  use.wanted =
      options.command_buffers == CommandBuffers::kAlways ||
      (options.command_buffers == CommandBuffers::kWhereTheyHelp && CommandBuffersHelp(facts));
  use.on_broken = [report = options.on_broken_command_buffers, name](const absl::Status& why) {
    if (report) report(name, why);
  };
  return use;
}

absl::StatusOr<std::unique_ptr<OpenClDevice>> Open(const std::shared_ptr<const Library>& cl,
                                                   const DeviceFacts& facts,
                                                   const std::string& name,
                                                   const OpenClOptions& options) {
  if (!absl::StrContains(facts.platform, options.platform)) {
    return absl::FailedPreconditionError(
        absl::StrCat("is not of the requested platform, ", options.platform));
  }
  if (!facts.usable.ok()) return facts.usable;
  if (facts.is_cpu && !options.sharing_host_memory)
    return absl::FailedPreconditionError("is a CPU, which is used only if it is named");
  if (facts.shares_host_memory && !options.sharing_host_memory) {
    return absl::FailedPreconditionError(
        "shares the memory of the host, so it is used only if it is named");
  }
  DeviceInfo info;
  info.name = name;
  info.model = facts.target.finisher.device;
  info.target = facts.target;
  info.memory_bytes = MemoryOf(facts, options.memory_limit_bytes_per_device);
  return OpenClDevice::Make(cl, std::move(info), facts, UseOf(facts, name, options), options.now);
}

}  // namespace

OpenClDriver::OpenClDriver(OpenClOptions options) : options_(std::move(options)) {}
OpenClDriver::~OpenClDriver() = default;

absl::StatusOr<KernelImage> OpenClDriver::Finish(const KernelImage& image,
                                                 const Finisher& finisher) {
  if (builder_ == nullptr) {
    auto builder = ProgramBuilder::Open(options_.library);
    if (!builder.ok()) return builder.status();
    builder_ = *std::move(builder);
  }
  return builder_->Build(image, finisher);
}

absl::StatusOr<std::vector<std::unique_ptr<Device>>> OpenClDriver::Enumerate(
    std::string* why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  if (options_.memory_limit_bytes_per_device < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.memory_limit_bytes_per_device,
                     " bytes of memory for each OpenCL device were requested; use 0 or more"));
  }
  const auto cl = Library::Open(options_.library);
  if (!cl.ok()) {
    *why_none = absl::StrCat("OpenCL's loader is missing or broken (", cl.status().message(),
                             "); install or reinstall ocl-icd-libopencl1, and the vendor's driver");
    return devices;
  }
  const auto found = QueryDevices(**cl);
  if (!found.ok()) {
    *why_none = std::string(found.status().message());
    return devices;
  }
  std::vector<std::string> left_out;
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string name = absl::StrCat("opencl:", i);
    auto device = Open(*cl, (*found)[i], name, options_);
    if (device.ok()) {
      devices.push_back(*std::move(device));
    } else {
      left_out.push_back(absl::StrCat(name, " (", (*found)[i].target.finisher.device, ") ",
                                      device.status().message()));
    }
  }
  *why_none = absl::StrJoin(left_out, ", ");
  return devices;
}

}  // namespace kiln::drivers::opencl
