#include "server/sessions/device_shares.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
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

DeviceShares::DeviceShares(User& user, fairness::Priority priority, runtime::ManagedDevice& home,
                           std::vector<runtime::ManagedDevice*> all)
    : user_(user), priority_(priority), all_(std::move(all)), home_(Make(home)) {}

DeviceShare DeviceShares::Make(runtime::ManagedDevice& device) const {
  KILN_CHECK(user_.devices.contains(device.name())) << device.name();
  return {&device, std::make_shared<buffers::Account>(user_.devices.at(device.name()).account),
          device.dispatcher().AddFlow(user_.name, user_.weight, priority_)};
}

const DeviceShare& DeviceShares::Of(runtime::ManagedDevice& device) {
  if (&device == home_.device) return home_;
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<DeviceShare>& share = others_[&device];
  if (!share) {
    share = std::make_unique<DeviceShare>(Make(device));
    share->account->SetExempt(exempt_);
    // Work queued there from now on fails at once.
    if (ended_) device.dispatcher().RemoveFlow(share->flow);
    KILN_VALIDATE(*this, others_.size());
  }
  return *share;
}

absl::StatusOr<const DeviceShare*> DeviceShares::Find(const std::string& name) {
  if (name == home_.device->name()) return &home_;
  const auto device = FindDevice(all_, name);
  if (!device.ok()) return device.status();
  return &Of(**device);
}

std::vector<const DeviceShare*> DeviceShares::Of(const buffers::Value& value) {
  std::vector<const DeviceShare*> shares;
  const auto add = [&](const buffers::Pool* pool) {
    if (pool == nullptr) return;
    if (auto device = Find(pool->device().info().name); device.ok()) shares.push_back(*device);
  };
  add(value.pool());
  for (const auto& part : value.parts()) add(part->pool());
  return shares;
}

std::vector<const DeviceShare*> DeviceShares::All() const {
  std::vector<const DeviceShare*> all = {&home_};
  absl::MutexLock lock(&mutex_);
  for (const auto& [device, share] : others_) all.push_back(share.get());
  return all;
}

int64_t DeviceShares::bytes() const {
  int64_t bytes = 0;
  for (const DeviceShare* share : All()) bytes += share->account->bytes();
  return bytes;
}

int64_t DeviceShares::buffers() const {
  int64_t buffers = 0;
  for (const DeviceShare* share : All()) buffers += share->account->buffers();
  return buffers;
}

void DeviceShares::SetExempt(bool exempt) {
  absl::MutexLock lock(&mutex_);
  exempt_ = exempt;
  home_.account->SetExempt(exempt);
  for (const auto& [device, share] : others_) share->account->SetExempt(exempt);
}

absl::Status DeviceShares::AfterFailure(const buffers::Value& value, const absl::Status& error) {
  if (error.ok()) return error;
  for (const DeviceShare* share : Of(value)) {
    absl::Status status = share->device->AfterFailure(error);
    if (status != error) return status;
  }
  return error;
}

void DeviceShares::StopUnwanted() {
  for (const DeviceShare* share : All()) {
    share->device->dispatcher().DropUnwanted(share->flow);
    share->device->device().StopUnwanted();
  }
}

void DeviceShares::RemoveFlows() {
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK(!ended_) << "the flows were removed before";
    ended_ = true;
    KILN_VALIDATE(*this, others_.size());
  }
  for (const DeviceShare* share : All()) share->device->dispatcher().RemoveFlow(share->flow);
}

void DeviceShares::Validate() const {
  KILN_CHECK(home_.device != nullptr && home_.account != nullptr);
  KILN_CHECK(!others_.contains(home_.device));
  for (const auto& [device, share] : others_) {
    KILN_CHECK(share != nullptr && share->device == device);
    KILN_CHECK(share->account != nullptr) << share->device->name();
  }
}

}  // namespace kiln::sessions
