// Identifies callers by their token, or by the name in their certificate.
#ifndef KILN_SERVER_AUTH_AUTHENTICATOR_H_
#define KILN_SERVER_AUTH_AUTHENTICATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/auth/principal.h"
#include "server/auth/user_store.h"
#include "server/cache/secret.h"

namespace kiln::auth {

// Argon2id (RFC 9106), through libsodium's crypto_pwhash_str. Secrets are random, so one pass over
// 8 MiB is far more than enough; it takes some tens of milliseconds.
absl::StatusOr<std::string> HashSecret(const std::string& secret);
bool VerifySecret(const std::string& hash, const std::string& secret);

// Thread-safe. A verified token is remembered, by a keyed hash, until the users change. A token
// with an unknown id, or one that this daemon did not make, costs no Argon2 run. At most
// `verifications_max` of those runs execute at once; others wait for them.
class Authenticator {
 public:
  struct Options {
    UserStore* store = nullptr;       // outlives this object
    cache::Secret key;                // that signs tokens
    std::function<absl::Time()> now;  // decides when tokens expire
    // Whether this is the name of an account of the machine that may use the daemon without a
    // token.
    std::function<bool(const std::string& name, Role role)> is_account = [](const std::string&,
                                                                            Role) { return false; };
    int verifications_max = 2;
    std::function<absl::StatusOr<std::string>(const std::string&)> hash = HashSecret;
    std::function<bool(const std::string&, const std::string&)> verify = VerifySecret;
  };
  explicit Authenticator(Options options);
  // Requires: no call is under way.
  ~Authenticator();

  // UNAUTHENTICATED, with the same message for an unknown, a wrong and a revoked token.
  absl::StatusOr<Principal> ByToken(const std::string& token) ABSL_LOCKS_EXCLUDED(mutex_);
  // `name`: of a certificate that the transport has verified. UNAUTHENTICATED: no user with this
  // name is known by a certificate.
  absl::StatusOr<Principal> ByCertificate(const std::string& name) const;
  // `name`: of an account of this machine. A user known by their account has the role they were
  // given. UNAUTHENTICATED: the user was revoked, the name cannot be a user's, or the user of that
  // name is not known by an account.
  absl::StatusOr<Principal> BySystemName(const std::string& name) const;
  // True as long as no user was ever added.
  bool nobody_known() const { return options_.store->empty(); }

  // Returns the new user's token, which is shown once and stored as a hash. Errors of
  // UserStore::Add; ALREADY_EXISTS: an account of the machine has the name and may use the daemon,
  // and the user would not be known by it.
  absl::StatusOr<std::string> AddUser(const std::string& name, Role role,
                                      Identities identities = {});
  // Returns another token of the user, which expires after `valid`. Errors of UserStore::AddToken.
  absl::StatusOr<std::string> AddToken(const std::string& name, absl::Duration valid);
  // Returns the token's user. Errors of UserStore::RevokeToken.
  absl::StatusOr<std::string> RevokeToken(const std::string& token_id);
  absl::Status RevokeUser(const std::string& name);
  const UserStore& store() const { return *options_.store; }

 private:
  struct NewToken {
    StoredToken stored;
    std::string text;
  };
  absl::StatusOr<NewToken> Make(absl::Duration valid) const;
  std::optional<Principal> Remembered(const std::string& fingerprint)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return verifying_ < options_.verifications_max;
  }
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::string fingerprint_key_;  // random, per process
  absl::Mutex mutex_;
  int verifying_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;  // the store's, when verified_ was filled
  struct Verified {
    Principal principal;
    StoredToken token;
  };
  // At most one entry for each token, since only verified tokens are stored.
  std::map<std::string, Verified> verified_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_AUTHENTICATOR_H_
