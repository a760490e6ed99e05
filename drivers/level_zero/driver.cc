#include "drivers/level_zero/driver.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "drivers/level_zero/device.h"
#include "drivers/level_zero/device_query.h"
#include "drivers/level_zero/library.h"
#include "drivers/level_zero/module_builder.h"

namespace kiln::drivers::level_zero {
namespace {

int64_t MemoryOf(const DeviceFacts& facts, int64_t limit) {
  // The rest is for contexts, code and other programs.
  const int64_t part =
      facts.shares_host_memory ? facts.memory_bytes / 2 : facts.memory_bytes / 8 * 7;
  return limit > 0 ? std::min(part, limit) : part;
}

absl::StatusOr<std::unique_ptr<LevelZeroDevice>> OpenLevelZeroDevice(
    const std::shared_ptr<const Library>& ze, const DeviceFacts& facts, const std::string& name,
    const LevelZeroOptions& options) {
  if (!facts.usable.ok()) return facts.usable;
  if (facts.shares_host_memory && !options.sharing_host_memory) {
    return absl::FailedPreconditionError(
        "shares the memory of the host, so it is used only if it is named");
  }
  DeviceInfo info;
  info.name = name;
  info.model = facts.model;
  info.target = facts.target;
  info.memory_bytes = MemoryOf(facts, options.memory_limit_bytes_per_device);
  return LevelZeroDevice::Make(ze, facts, std::move(info), options.now);
}

}  // namespace

LevelZeroDriver::LevelZeroDriver(LevelZeroOptions options) : options_(std::move(options)) {}
LevelZeroDriver::~LevelZeroDriver() = default;

absl::StatusOr<KernelImage> LevelZeroDriver::Finish(const KernelImage& image,
                                                    const Finisher& finisher) {
  if (builder_ == nullptr) {
    auto builder = ModuleBuilder::Open(options_.library);
    if (!builder.ok()) return builder.status();
    builder_ = *std::move(builder);
  }
  return builder_->Build(image, finisher);
}

absl::StatusOr<std::vector<std::unique_ptr<Device>>> LevelZeroDriver::Enumerate(
    std::string* why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  if (options_.memory_limit_bytes_per_device < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.memory_limit_bytes_per_device,
                     " bytes of memory for each Level Zero device were requested; use 0 or more"));
  }
  const auto ze = Library::Open(options_.library);
  if (!ze.ok()) {
    *why_none = std::string(ze.status().message());
    return devices;
  }
  const auto found = QueryDevices(**ze);
  if (!found.ok()) {
    *why_none = std::string(found.status().message());
    return devices;
  }
  std::vector<std::string> left_out;
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string name = absl::StrCat("level_zero:", i);
    auto device = OpenLevelZeroDevice(*ze, (*found)[i], name, options_);
    if (device.ok()) {
      devices.push_back(*std::move(device));
    } else {
      left_out.push_back(
          absl::StrCat(name, " (", (*found)[i].model, ") ", device.status().message()));
    }
  }
  *why_none = absl::StrJoin(left_out, ", ");
  return devices;
}

}  // namespace kiln::drivers::level_zero
