// The users whose limits differ from the daemon's defaults, in one file of its state folder.
#ifndef KILN_SERVER_QUOTA_LIMIT_STORE_H_
#define KILN_SERVER_QUOTA_LIMIT_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/quota/resource.h"

namespace kiln::quota {

// Thread-safe.
class LimitStore {
 public:
  // The limits set for one user.
  using Overrides = std::map<Resource, int64_t>;
  // nullopt: back to the default.
  using Changes = std::map<Resource, std::optional<int64_t>>;

  // Reads the file `path`; without a file, no limits are set. DATA_LOSS: it is damaged.
  // `users_max`: the most users with limits set.
  static absl::StatusOr<std::unique_ptr<LimitStore>> Open(const std::string& path, Limits defaults,
                                                          size_t users_max = 4096);

  // Reads the file again, which another program may have replaced, and sets the limits of users
  // without other limits. On an error of the file, which it returns, only the latter.
  absl::Status Reload(Limits defaults) ABSL_LOCKS_EXCLUDED(mutex_);

  Limits LimitsOf(const std::string& user) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Empty if all limits are the defaults.
  Overrides OverridesOf(const std::string& user) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Requires: `user` has no blanks. RESOURCE_EXHAUSTED, reason TOO_MANY_QUOTAS; UNAVAILABLE: it
  // cannot be written. On an error nothing changes.
  absl::Status Set(const std::string& user, const Changes& changes) ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<std::string, Overrides> List() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Users = std::map<std::string, Overrides>;
  LimitStore(std::string path, Limits defaults, size_t users_max, Users users)
      : path_(std::move(path)),
        users_max_(users_max),
        defaults_(defaults),
        users_(std::move(users)) {}

  static absl::StatusOr<Users> Read(const std::string& path);
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const size_t users_max_;
  mutable absl::Mutex mutex_;
  Limits defaults_ ABSL_GUARDED_BY(mutex_);
  // Without users who have only defaults. A file may have more than `users_max_`.
  Users users_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::quota

#endif  // KILN_SERVER_QUOTA_LIMIT_STORE_H_
