// The devices that a session uses: its own device and others that it names.
#ifndef KILN_SERVER_SESSIONS_DEVICE_SHARES_H_
#define KILN_SERVER_SESSIONS_DEVICE_SHARES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/buffers/value.h"
#include "server/runtime/device/managed_device.h"
#include "server/sessions/user.h"

namespace kiln::sessions {

// Finds a device by name; the message of NOT_FOUND lists the existing ones.
absl::StatusOr<runtime::ManagedDevice*> FindDevice(
    const std::vector<runtime::ManagedDevice*>& devices, const std::string& name);

// The account and the queue flow of a session on a device, until the session ends.
struct DeviceShare {
  runtime::ManagedDevice* device = nullptr;
  std::shared_ptr<buffers::Account> account;
  fairness::FairQueue::FlowId flow{};
};

// Thread-safe; its lock is taken after the session's. The account and the flow are created when a
// device is first used.
class DeviceShares {
 public:
  // `home` is the session's own device, `all` are the daemon's devices. Requires: `user` and the
  // devices outlive this.
  DeviceShares(User& user, fairness::Priority priority, runtime::ManagedDevice& home,
               std::vector<runtime::ManagedDevice*> all);

  const DeviceShare& home() const { return home_; }
  const DeviceShare& Of(runtime::ManagedDevice& device) ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND: see FindDevice.
  absl::StatusOr<const DeviceShare*> Find(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // The devices with the value's memory, in the order of its parts; empty for a failed value.
  std::vector<const DeviceShare*> Of(const buffers::Value& value) ABSL_LOCKS_EXCLUDED(mutex_);
  // The devices used so far; the session's own device is the first.
  std::vector<const DeviceShare*> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t buffers() const ABSL_LOCKS_EXCLUDED(mutex_);

  // While this is set, limits of the session refuse nothing, also on devices that are used later.
  void SetExempt(bool exempt) ABSL_LOCKS_EXCLUDED(mutex_);
  // A copy or an allocation for the value failed: calls ManagedDevice::AfterFailure of its devices.
  absl::Status AfterFailure(const buffers::Value& value, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops cancelled work that is queued on any device, and stops it on devices that can.
  void StopUnwanted() ABSL_LOCKS_EXCLUDED(mutex_);
  // The session has ended: fails all queued work, and work queued later. Called once.
  void RemoveFlows() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  DeviceShare Make(runtime::ManagedDevice& device) const;
  // Each other share is that of its device and has an account; the session's own device has none of
  // them.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  User& user_;
  const fairness::Priority priority_;
  const std::vector<runtime::ManagedDevice*> all_;
  const DeviceShare home_;
  mutable absl::Mutex mutex_;
  std::map<const runtime::ManagedDevice*, std::unique_ptr<DeviceShare>> others_
      ABSL_GUARDED_BY(mutex_);
  bool exempt_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_DEVICE_SHARES_H_
