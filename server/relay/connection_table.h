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
  // the same tokens (Rates::origin), and an honest one must get one soon.
  size_t strangers_max = 256;
  // Of all origins. Whoever has many addresses or accounts takes no more, and nothing of users'.
  size_t all_strangers_max = 512;
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
  // owner (a user, or the strangers of an origin) with too many; of the origin with the most, if
  // strangers have too many, or all together and strangers more than an eighth; else of the user
  // with the most. Those are closed from which nothing has come for the longest time. Clients
  // connect again by themselves.
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
  using Owners = std::map<std::string, std::set<uint64_t>>;  // no set is empty
  struct Entry {
    bool is_users = false;
    std::string owner;
    std::shared_ptr<Activity> activity;
  };

  void Insert(uint64_t number, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<uint64_t> CloseExcess(const std::set<uint64_t>& owned, size_t owned_max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsMoreSilent(uint64_t a, uint64_t b) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t MostSilent(const std::set<uint64_t>& numbers) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t MostSilentOfMost(const Owners& owners) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveLocked(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Owners users_ ABSL_GUARDED_BY(mutex_);
  Owners origins_ ABSL_GUARDED_BY(mutex_);        // of strangers
  size_t strangers_ ABSL_GUARDED_BY(mutex_) = 0;  // connections of all origins
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CONNECTION_TABLE_H_
