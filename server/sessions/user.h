// Everybody who opens sessions under one name: what they have together, and how much that may be.
#ifndef KILN_SERVER_SESSIONS_USER_H_
#define KILN_SERVER_SESSIONS_USER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/buffers/account.h"
#include "server/memory/host_memory.h"
#include "server/quota/gate.h"
#include "server/quota/meter.h"
#include "server/quota/resource.h"

namespace kiln::sessions {

class Session;

// What a user has and has had of a device since the daemon started.
struct DeviceUse {
  std::atomic<int64_t> nanoseconds{0};
  std::atomic<int64_t> runs{0};
  std::shared_ptr<buffers::Account> account;  // the parent of his sessions' accounts there
};

// Thread-safe.
class User {
 public:
  // `host` is the parent of its sessions' accounts; `device_names` are all of the daemon's.
  User(std::string name, std::shared_ptr<memory::Account> host,
       const std::vector<std::string>& device_names);

  const std::string name;
  const std::shared_ptr<memory::Account> host;
  // Of all devices together.
  const std::shared_ptr<buffers::Account> account;
  std::map<std::string, DeviceUse> devices;  // by name; none is added later
  // The share of a device's time, relative to other users'; one of the limits.
  std::atomic<double> weight{1};
  quota::Meter programs;
  quota::Meter operations;
  quota::Meter uploads;
  quota::Gate upload_bytes;
  quota::Meter graph_nodes;  // of one graph: nothing is ever taken
  quota::Meter sessions;     // likewise: the registry counts them
  quota::Meter disk;         // likewise: the files are counted (KeptSessions)

  // What is there stays, even if it is more.
  void SetLimits(const quota::Limits& limits);

  struct Use {
    quota::Resource resource;
    std::string device;  // of device memory
    int64_t used = 0;
    int64_t limit = 0;
  };
  // Of everything, in the order of quota::Resources; of device memory one for each device.
  std::vector<Use> GetUses() const ABSL_LOCKS_EXCLUDED(mutex_);

  void AddSession(const std::shared_ptr<Session>& session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those that are not closed, oldest first.
  std::vector<std::shared_ptr<Session>> ListSessions() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A refusal by one of the limits, with the names of what takes most; other errors stay as they
  // are. No session's lock may be held.
  absl::Status Explain(const absl::Status& status) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  // As many as the registry lets him have, and those that have ended since the last one was opened.
  std::vector<std::weak_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_USER_H_
