#include "server/sessions/used_devices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"

namespace kiln::sessions {

absl::StatusOr<runtime::ManagedDevice*> FindDevice(
    const std::vector<runtime::ManagedDevice*>& devices, const std::string& name) {
  for (runtime::ManagedDevice* device : devices)
    if (device->name() == name) return device;
  return errors::WithReason(
      absl::NotFoundError(
          absl::StrCat("there is no device ", Quoted(name), "; available: ",
                       absl::StrJoin(devices, ", ",
                                     [](std::string* out, const runtime::ManagedDevice* device) {
                                       out->append(device->name());
                                     }))),
      "UNKNOWN_DEVICE", {{"device", name}});
}

UsedDevices::UsedDevices(User& user, fairness::Priority priority, runtime::ManagedDevice& home,
                         std::vector<runtime::ManagedDevice*> all)
    : user_(user), priority_(priority), all_(std::move(all)), home_(Make(home)) {}

UsedDevice UsedDevices::Make(runtime::ManagedDevice& device) const {
  return {&device, std::make_shared<buffers::Account>(user_.devices.at(device.name()).account),
          device.dispatcher().AddFlow(user_.name, user_.weight, priority_)};
}

const UsedDevice& UsedDevices::Of(runtime::ManagedDevice& device) {
  if (&device == home_.device) return home_;
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<UsedDevice>& used = others_[&device];
  if (!used) {
    used = std::make_unique<UsedDevice>(Make(device));
    used->account->SetExempt(exempt_);
    // Work queued there from now on fails at once.
    if (ended_) device.dispatcher().RemoveFlow(used->flow);
  }
  return *used;
}

absl::StatusOr<const UsedDevice*> UsedDevices::Find(const std::string& name) {
  if (name == home_.device->name()) return &home_;
  const auto device = FindDevice(all_, name);
  if (!device.ok()) return device.status();
  return &Of(**device);
}

std::vector<const UsedDevice*> UsedDevices::Of(const buffers::Value& value) {
  std::vector<const UsedDevice*> used;
  const auto add = [&](const buffers::Pool* pool) {
    if (pool == nullptr) return;
    if (auto device = Find(pool->device().info().name); device.ok()) used.push_back(*device);
  };
  add(value.pool());
  for (const auto& part : value.parts()) add(part->pool());
  return used;
}

std::vector<const UsedDevice*> UsedDevices::All() const {
  std::vector<const UsedDevice*> all = {&home_};
  absl::MutexLock lock(&mutex_);
  for (const auto& [device, used] : others_) all.push_back(used.get());
  return all;
}

int64_t UsedDevices::bytes() const {
  int64_t bytes = 0;
  for (const UsedDevice* used : All()) bytes += used->account->bytes();
  return bytes;
}

int64_t UsedDevices::buffers() const {
  int64_t buffers = 0;
  for (const UsedDevice* used : All()) buffers += used->account->buffers();
  return buffers;
}

void UsedDevices::SetExempt(bool exempt) {
  absl::MutexLock lock(&mutex_);
  exempt_ = exempt;
  home_.account->SetExempt(exempt);
  for (const auto& [device, used] : others_) used->account->SetExempt(exempt);
}

absl::Status UsedDevices::AfterFailure(const buffers::Value& value, const absl::Status& error) {
  if (error.ok()) return error;
  for (const UsedDevice* used : Of(value)) {
    absl::Status status = used->device->AfterFailure(error);
    if (status != error) return status;
  }
  return error;
}

void UsedDevices::StopUnwanted() {
  for (const UsedDevice* used : All()) {
    used->device->dispatcher().DropUnwanted(used->flow);
    used->device->device().StopUnwanted();
  }
}

void UsedDevices::RemoveFlows() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  for (const UsedDevice* used : All()) used->device->dispatcher().RemoveFlow(used->flow);
}

}  // namespace kiln::sessions
