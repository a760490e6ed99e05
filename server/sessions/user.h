// A user: the shared usage and limits of all sessions opened under one name.
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

// A user's usage of a device since the daemon started.
struct DeviceUse {
  std::atomic<int64_t> nanoseconds{0};
  std::atomic<int64_t> runs{0};
  std::atomic<int64_t> wait_nanoseconds{0};   // of the runs in the queue, until they began
  std::shared_ptr<buffers::Account> account;  // the parent of their sessions' accounts there
};

// Thread-safe.
class User {
 public:
  // `host` is the parent of the sessions' accounts; `device_names` are all devices of the daemon.
  User(std::string name, std::shared_ptr<memory::Account> host,
       const std::vector<std::string>& device_names);

  const std::string name;
  const std::shared_ptr<memory::Account> host;
  // For all devices together.
  const std::shared_ptr<buffers::Account> account;
  std::map<std::string, DeviceUse> devices;  // by name; none is added later
  // The time for which operations have waited for programs to be compiled.
  std::atomic<int64_t> compile_wait_nanoseconds{0};
  // The share of a device's time, relative to other users'; one of the limits.
  std::atomic<double> weight{1};
  quota::Meter programs;
  quota::Meter operations;
  quota::Meter uploads;
  quota::Gate upload_bytes;
  quota::Meter graph_nodes;  // per graph: only checked, never taken from
  quota::Meter sessions;     // only the limit: the registry counts sessions
  quota::Meter disk;         // only the limit: CheckpointStore counts the files

  // Usage above a new limit is kept.
  void SetLimits(const quota::Limits& limits);

  struct Use {
    quota::Resource resource;
    std::string device;  // if the resource is device memory
    int64_t used = 0;
    int64_t limit = 0;
  };
  // The usage of all resources, in the order of quota::Resources; device memory has an entry per
  // device.
  std::vector<Use> GetUses() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Requires: the session is this user's, and was not added before.
  void AddSession(const std::shared_ptr<Session>& session) ABSL_LOCKS_EXCLUDED(mutex_);
  // The sessions that are not closed, oldest first.
  std::vector<std::shared_ptr<Session>> ListSessions() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the names of the largest holders to a refusal by one of the limits; returns other errors
  // unchanged. Requires: the caller holds no session's lock.
  absl::Status Explain(const absl::Status& status) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // No session is there twice.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  // At most as many as the registry allows the user, and those that have ended since the last one
  // was opened.
  std::vector<std::weak_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_USER_H_
