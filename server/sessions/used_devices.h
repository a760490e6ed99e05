// The devices that a session uses: its own, and those that it names.
#ifndef KILN_SERVER_SESSIONS_USED_DEVICES_H_
#define KILN_SERVER_SESSIONS_USED_DEVICES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/buffers/value.h"
#include "server/runtime/managed_device.h"
#include "server/sessions/user.h"

namespace kiln::sessions {

// By name; NOT_FOUND lists those that there are.
absl::StatusOr<runtime::ManagedDevice*> FindDevice(
    const std::vector<runtime::ManagedDevice*>& devices, const std::string& name);

// What a session has on a device; until the session's end.
struct UsedDevice {
  runtime::ManagedDevice* device = nullptr;
  std::shared_ptr<buffers::Account> account;
  fairness::FairQueue::FlowId flow{};
};

// Thread-safe; its lock is taken after the session's. An account and a flow are made when a device
// is first used.
class UsedDevices {
 public:
  // `all` are the daemon's; they and `user` outlive this, `home` is the session's own.
  UsedDevices(User& user, fairness::Priority priority, runtime::ManagedDevice& home,
              std::vector<runtime::ManagedDevice*> all);

  const UsedDevice& home() const { return home_; }
  const UsedDevice& Of(runtime::ManagedDevice& device) ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND; see FindDevice.
  absl::StatusOr<const UsedDevice*> Find(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Where a value has its memory, in the order of its parts; none for one that has failed.
  std::vector<const UsedDevice*> Of(const buffers::Value& value) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those that have been used so far; the session's own is the first.
  std::vector<const UsedDevice*> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t buffers() const ABSL_LOCKS_EXCLUDED(mutex_);

  // While it is set, no limit of the session's refuses anything; also on devices that come later.
  void SetExempt(bool exempt) ABSL_LOCKS_EXCLUDED(mutex_);
  // A copy or an allocation for the value failed: ManagedDevice::AfterFailure of its devices.
  absl::Status AfterFailure(const buffers::Value& value, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Work that nobody wants any more goes, on all devices.
  void StopUnwanted() ABSL_LOCKS_EXCLUDED(mutex_);
  // The session has ended: what is queued fails.
  void RemoveFlows() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  UsedDevice Make(runtime::ManagedDevice& device) const;

  User& user_;
  const fairness::Priority priority_;
  const std::vector<runtime::ManagedDevice*> all_;
  const UsedDevice home_;
  mutable absl::Mutex mutex_;
  std::map<const runtime::ManagedDevice*, std::unique_ptr<UsedDevice>> others_
      ABSL_GUARDED_BY(mutex_);
  bool exempt_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_USED_DEVICES_H_
