#include "drivers/common/queued_device/vendor_driver.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "drivers/common/queued_device/queued_device.h"

namespace kiln::drivers {

absl::Status CheckRequirements(std::initializer_list<Requirement> requirements) {
  for (const Requirement& requirement : requirements) {
    if (!requirement.holds) return absl::FailedPreconditionError(requirement.otherwise);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::unique_ptr<Device>>> VendorDriver::Enumerate(
    std::string* why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  if (const int64_t limit = shared_options_.memory_limit_bytes_per_device; limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat(limit, " bytes of memory for each ",
                                                   shared_options_.vendor,
                                                   " device were requested; use 0 or more"));
  }
  const auto found = Find();
  if (!found.ok()) {
    *why_none = std::string(found.status().message());
    return devices;
  }
  std::vector<std::string> left_out;
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string number = absl::StrCat(name(), ":", i);
    auto device = Open((*found)[i], number);
    if (device.ok()) {
      devices.push_back(*std::move(device));
    } else {
      left_out.push_back(
          absl::StrCat(number, " (", (*found)[i].model, ") ", device.status().message()));
    }
  }
  *why_none = absl::StrJoin(left_out, ", ");
  return devices;
}

std::string PciAddress(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function) {
  return absl::StrFormat("%04x:%02x:%02x.%x", domain, bus, device, function);
}

absl::StatusOr<std::unique_ptr<Device>> VendorDriver::Open(const Openable& found,
                                                           const std::string& name) const {
  if (!found.usable.ok()) return found.usable;
  if (found.shares_host_memory && !shared_options_.sharing_host_memory) {
    return absl::FailedPreconditionError(
        "shares the memory of the host, so it is used only if it is named");
  }
  auto device = found.open();
  if (!device.ok()) return device.status();
  DeviceInfo info = {.name = name,
                     .model = found.model,
                     .target = found.target,
                     .memory_bytes = MemoryOf(found),
                     .pci_address = found.pci_address};
  return std::make_unique<QueuedDevice>(*std::move(device), std::move(info), shared_options_.now);
}

int64_t VendorDriver::MemoryOf(const FoundDevice& found) const {
  // The rest is for contexts, code and other programs.
  const int64_t part =
      found.shares_host_memory ? found.memory_bytes / 2 : found.memory_bytes / 8 * 7;
  const int64_t limit = shared_options_.memory_limit_bytes_per_device;
  return limit > 0 ? std::min(part, limit) : part;
}

absl::StatusOr<KernelImage> VendorDriver::Finish(const KernelImage& image,
                                                 const Finisher& finisher) {
  if (builder_ == nullptr) {
    auto builder = OpenBuilder();
    if (!builder.ok()) return builder.status();
    builder_ = *std::move(builder);
  }
  return builder_->Build(image, finisher);
}

absl::StatusOr<std::unique_ptr<KernelBuilder>> VendorDriver::OpenBuilder() {
  return absl::UnimplementedError(
      absl::StrCat("the devices of ", name(), " load kernel images without another step"));
}

}  // namespace kiln::drivers
