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
  std::string hash;  // of the token's secret, as crypto_pwhash_str writes it
  absl::Time created{};
  std::optional<absl::Time> expires{};  // nothing: never
  std::string key{};  // cache::Secret::Fingerprint of that which made it; empty: not known

  bool IsExpired(absl::Time now) const { return expires && *expires <= now; }
};

// By what else than a token a user is known. A certificate's common name and the name of one of the
// machine's accounts are not the users' names: whoever has them may be somebody else.
struct Identities {
  bool certificate = false;
  bool system = false;

  std::vector<std::string> names() const;  // "certificate", "system"
};
// INVALID_ARGUMENT: one of the names is not among these.
absl::StatusOr<Identities> ParseIdentities(const std::vector<std::string>& names);

// Of each user.
inline constexpr size_t kTokensMax = 8;

struct StoredUser {
  std::string name;
  Role role = Role::kUser;
  Identities identities{};
  absl::Time created{};
  std::optional<absl::Time> revoked{};
  std::vector<StoredToken> tokens{};  // oldest first; kTokensMax at most

  // Null if the user has none of that id.
  const StoredToken* FindToken(const std::string& id) const;
};

// OK for 1 to 64 letters, digits, "_", "-", "." and "@" that begin with a letter or digit;
// kLocalUser is nobody's name.
absl::Status CheckUserName(const std::string& name);

// Thread-safe. Every change is a whole new file, which takes the old one's place once it is on the
// disk: a crash leaves one or the other.
class UserStore {
 public:
  // The users in the file `path`, which is made if there is none. DATA_LOSS: it is damaged. Users
  // in a file of an earlier version, which had no identities, keep both of them. `most_users`: with
  // those that are revoked, whose names stay taken for others.
  static absl::StatusOr<std::unique_ptr<UserStore>> Open(const std::string& path,
                                                         int most_users = 4096);

  // DATA_LOSS: the file `path` is not there, but the file `made_later` is, which the daemon makes
  // after it.
  static absl::Status CheckNotLost(const std::string& path, const std::string& made_later);

  // Takes the place of a revoked user of that name. ALREADY_EXISTS: he is not revoked.
  // RESOURCE_EXHAUSTED: there are as many as may be.
  absl::Status Add(const StoredUser& user) ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND: there is none, or he is revoked already.
  absl::Status Revoke(const std::string& name, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops the user's expired tokens. NOT_FOUND: there is no such user, or the user is revoked.
  // RESOURCE_EXHAUSTED: the user has kTokensMax others.
  absl::Status AddToken(const std::string& name, const StoredToken& token)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the name of the user whose token it was. NOT_FOUND: it is nobody's.
  absl::StatusOr<std::string> RevokeToken(const std::string& token_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether anybody has a token that another key than this one has made, or, if it is empty, a
  // token at all. Revoked users do not count.
  bool HasTokensOfAnotherKey(const std::string& fingerprint) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all tokens; users stay, without any.
  absl::Status DropTokens() ABSL_LOCKS_EXCLUDED(mutex_);

  // By name.
  std::vector<StoredUser> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<StoredUser> Find(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing if the token is nobody's, or its user is revoked.
  std::optional<StoredUser> FindByToken(const std::string& token_id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True as long as nobody was ever added.
  bool empty() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Another one after every change.
  int64_t version() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Users = std::map<std::string, StoredUser>;
  UserStore(std::string path, int most_users, Users users)
      : path_(std::move(path)), most_users_(most_users), users_(std::move(users)) {}
  absl::Status Replace(Users users) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const int most_users_;
  mutable absl::Mutex mutex_;
  Users users_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_USER_STORE_H_
