#include "drivers/opencl/driver.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "drivers/opencl/device.h"
#include "drivers/opencl/device_query.h"
#include "drivers/opencl/library.h"
#include "drivers/opencl/program_builder.h"

namespace kiln::drivers::opencl {
namespace {

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

absl::Status CheckOffered(const DeviceFacts& facts, const OpenClOptions& options) {
  if (!absl::StrContains(facts.platform, options.platform)) {
    return absl::FailedPreconditionError(
        absl::StrCat("is not of the requested platform, ", options.platform));
  }
  if (facts.usable.ok() && facts.is_cpu && !options.sharing_host_memory)
    return absl::FailedPreconditionError("is a CPU, which is used only if it is named");
  return facts.usable;
}

}  // namespace

OpenClDriver::OpenClDriver(OpenClOptions options)
    : VendorDriver({.vendor = "OpenCL",
                    .memory_limit_bytes_per_device = options.memory_limit_bytes_per_device,
                    .sharing_host_memory = options.sharing_host_memory,
                    .now = options.now}),
      options_(std::move(options)) {}

absl::StatusOr<std::vector<VendorDriver::Openable>> OpenClDriver::Find() {
  const auto cl = Library::Open(options_.library);
  if (!cl.ok()) {
    return absl::NotFoundError(
        absl::StrCat("OpenCL's loader is missing or broken (", cl.status().message(),
                     "); install or reinstall ocl-icd-libopencl1, and the vendor's driver"));
  }
  const auto devices = QueryDevices(**cl);
  if (!devices.ok()) return devices.status();
  std::vector<Openable> found;
  for (const DeviceFacts& facts : *devices) {
    const auto use = UseOf(facts, absl::StrCat(name(), ":", found.size()), options_);
    found.push_back({facts, [cl = *cl, facts, use] { return OpenClDevice::Open(cl, facts, use); }});
    found.back().usable = CheckOffered(facts, options_);
  }
  return found;
}

absl::StatusOr<std::unique_ptr<KernelBuilder>> OpenClDriver::OpenBuilder() {
  return ProgramBuilder::Open(options_.library);
}

}  // namespace kiln::drivers::opencl
