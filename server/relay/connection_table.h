// Decides which connections are closed when there are too many, so that no client can use up the
// file descriptors that others need.
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
  // Limits for a process that may have `files` open files. A connection takes three of them; a
  // quarter, up to 1,024, is reserved for everything else.
  static ConnectionLimits ForFiles(uint64_t files);

  size_t connections_max = 1024;
  // Connections of one user.
  size_t user_max = 256;
  // Connections of one origin (Peer::origin) without an accepted call. They compete for the same
  // tokens (Rates::origin), and an honest client among them must get one soon.
  size_t strangers_max = 256;
  // Of all origins together. A client with many addresses or accounts cannot take more than this,
  // and nothing of known users.
  size_t all_strangers_max = 512;
};

// Thread-safe.
class ConnectionTable {
 public:
  // The time of the client's last data. Shared by the table and the connection's link.
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

  // Add and SetUser return the numbers of the connections that must be closed, which the table
  // removes. If an owner (a user, or the strangers of an origin) has too many, it is one of theirs.
  // If there are too many strangers, or too many connections in total of which more than an eighth
  // are strangers, it is one of the origin with the most. Otherwise it is one of the user with the
  // most. The connection that has been silent for the longest time is chosen. Clients reconnect
  // automatically.
  //
  // Adds a new connection, as a stranger's. Requires: the number is new.
  std::vector<uint64_t> Add(uint64_t number, const std::string& origin,
                            std::shared_ptr<Activity> activity) ABSL_LOCKS_EXCLUDED(mutex_);
  // Assigns the connection to its user, at its first accepted call.
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
  // Requires: there is an owner.
  uint64_t MostSilentOfMost(const Owners& owners) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveLocked(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ValidateOwners(const Owners& owners, bool are_users, size_t owned_max) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Owners users_ ABSL_GUARDED_BY(mutex_);
  Owners origins_ ABSL_GUARDED_BY(mutex_);        // strangers' connections
  size_t strangers_ ABSL_GUARDED_BY(mutex_) = 0;  // number of strangers' connections
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CONNECTION_TABLE_H_
