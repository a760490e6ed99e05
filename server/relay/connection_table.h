// Decides which connections are closed when there are too many, so that nobody can take the
// descriptors that others need.
#ifndef KILN_SERVER_RELAY_CONNECTION_TABLE_H_
#define KILN_SERVER_RELAY_CONNECTION_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace kiln::relay {

struct ConnectionLimits {
  // For a process that may have so many open files. A connection takes three of them, and a
  // quarter, up to 1,024, is left for everything else.
  static ConnectionLimits ForFiles(uint64_t files);

  size_t connections_max = 1024;
  // Connections of one user.
  size_t user_max = 256;
  // Connections of one origin (Peer::origin) with no accepted call yet. They compete for
  // the same tokens (CallRates::origin), and an honest one must get one soon.
  size_t strangers_max = 256;
};

// Thread-safe.
class ConnectionTable {
 public:
  // When the client last said something. Shared by the table and by the connection's link.
  class Activity {
   public:
    explicit Activity(absl::Time now) : nanoseconds_(absl::ToUnixNanos(now)) {}
    void Note(absl::Time now) {
      nanoseconds_.store(absl::ToUnixNanos(now), std::memory_order_relaxed);
    }
    int64_t nanoseconds() const { return nanoseconds_.load(std::memory_order_relaxed); }

   private:
    std::atomic<int64_t> nanoseconds_;
  };

  explicit ConnectionTable(ConnectionLimits limits) : limits_(limits) {}

  // These return the numbers of the connections that must be closed, which the table forgets: of an
  // owner with too many, or of the owner with the most if all together are too many, those from
  // which nothing has come for the longest time. Clients connect again by themselves.
  //
  // A new connection is a stranger's. Requires: the number is new.
  std::vector<uint64_t> Add(uint64_t number, const std::string& origin,
                            std::shared_ptr<Activity> activity) ABSL_LOCKS_EXCLUDED(mutex_);
  // From its first accepted call on it is its user's.
  std::vector<uint64_t> SetUser(uint64_t number, const std::string& user)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Remove(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string owner;
    std::shared_ptr<Activity> activity;
  };

  std::vector<uint64_t> CloseExcess(const std::string& owner, size_t owner_max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t MostSilent(const std::string& owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const std::string& OwnerWithMost() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveLocked(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::set<uint64_t>> owners_ ABSL_GUARDED_BY(mutex_);  // none is empty
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CONNECTION_TABLE_H_
