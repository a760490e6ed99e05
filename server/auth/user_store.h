// The users of a daemon, in one file of its state folder.
#ifndef KILN_SERVER_AUTH_USER_STORE_H_
#define KILN_SERVER_AUTH_USER_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/auth/principal.h"

namespace kiln::auth {

struct StoredToken {
  std::string id;
  std::string hash;  // of the token's secret, by crypto_pwhash_str
  absl::Time created{};
  std::optional<absl::Time> expires{};  // nullopt: never
  std::string key{};  // cache::Secret::Fingerprint of the key that made it; empty: unknown

  bool IsExpired(absl::Time now) const { return expires && *expires <= now; }
};

// How a user is known other than by a token. A common name in a certificate, or the name of an
// account of the machine, is not automatically the user of the same name: it may be another person.
struct Identities {
  bool certificate = false;
  bool system = false;

  std::vector<std::string> names() const;  // "certificate", "system"
};
// INVALID_ARGUMENT: a name other than these.
absl::StatusOr<Identities> ParseIdentities(const std::vector<std::string>& names);

// The most tokens of one user.
inline constexpr size_t kTokensMax = 8;

struct StoredUser {
  std::string name;
  Role role = Role::kUser;
  Identities identities{};
  absl::Time created{};
  std::optional<absl::Time> revoked{};
  std::vector<StoredToken> tokens{};  // oldest first; at most kTokensMax

  // Null if the user has no token with that id.
  const StoredToken* FindToken(const std::string& id) const;
};

// OK for 1 to 64 letters, digits, "_", "-", "." and "@" that begin with a letter or digit, except
// kLocalUser.
absl::Status CheckUserName(const std::string& name);

// Thread-safe. Every change writes a new file, which replaces the old one once it is on disk, so a
// crash leaves one of the two.
class UserStore {
 public:
  // Reads the users from the file `path`, which is created if it does not exist. DATA_LOSS: it is
  // damaged. Users from an earlier version's file, which had no identities, get both. `users_max`
  // includes revoked users, whose names are not reused.
  static absl::StatusOr<std::unique_ptr<UserStore>> Open(const std::string& path,
                                                         int users_max = 4096);

  // Reads the file again, which another program has replaced. Returns the names of users who were
  // revoked or removed by that. NOT_FOUND, DATA_LOSS, UNAVAILABLE: the users stay as they are.
  absl::StatusOr<std::vector<std::string>> Reload() ABSL_LOCKS_EXCLUDED(mutex_);

  // DATA_LOSS: the file `path` does not exist, but the file `made_later` does, which the daemon
  // creates after it.
  static absl::Status CheckNotLost(const std::string& path, const std::string& made_later);

  // Replaces a revoked user with the same name. ALREADY_EXISTS: that user is not revoked.
  // RESOURCE_EXHAUSTED: there are too many users. Requires: at most kTokensMax tokens.
  absl::Status Add(const StoredUser& user) ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND: there is no such user, or the user is already revoked.
  absl::Status Revoke(const std::string& name, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops the user's expired tokens. NOT_FOUND: there is no such user, or the user is revoked.
  // RESOURCE_EXHAUSTED: the user has kTokensMax other tokens.
  absl::Status AddToken(const std::string& name, const StoredToken& token)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the name of the token's user. NOT_FOUND: there is no such token.
  absl::StatusOr<std::string> RevokeToken(const std::string& token_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a user that is not revoked has a token made with another key or, if `fingerprint` is
  // empty, any token.
  bool HasTokensOfAnotherKey(const std::string& fingerprint) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes all tokens; users remain, without tokens.
  absl::Status DropTokens() ABSL_LOCKS_EXCLUDED(mutex_);

  // Sorted by name.
  std::vector<StoredUser> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<StoredUser> Find(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns nullopt if no user has the token, or its user is revoked.
  std::optional<StoredUser> FindByToken(const std::string& token_id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True as long as no user was ever added.
  bool empty() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes with every change of the users.
  int64_t version() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Users = std::map<std::string, StoredUser>;
  UserStore(std::string path, int users_max, Users users)
      : path_(std::move(path)), users_max_(users_max), users_(std::move(users)) {}
  static absl::StatusOr<Users> Read(const std::string& path);
  absl::Status Replace(Users users) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const int users_max_;
  mutable absl::Mutex mutex_;
  Users users_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_USER_STORE_H_
