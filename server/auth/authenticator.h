// Tells by a token, or a certificate's name, who somebody is.
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

// Argon2id (RFC 9106) by libsodium's crypto_pwhash_str. Secrets are random, so one pass over 8 MiB
// is far more than enough, and takes some ten milliseconds.
absl::StatusOr<std::string> HashSecret(const std::string& secret);
bool VerifySecret(const std::string& hash, const std::string& secret);

// Thread-safe. A token that was verified is remembered, by a keyed hash, until the users change. A
// token with an unknown id, or one that this daemon never made, costs no Argon2 run; of those at
// most `most_verifications` go on at once, and the rest wait for them.
class Authenticator {
 public:
  struct Options {
    UserStore* store = nullptr;       // outlives this
    cache::Secret key;                // of tokens
    std::function<absl::Time()> now;  // tokens expire by it
    // True if the name is that of an account of the machine who may use the daemon without a token.
    std::function<bool(const std::string& name, Role role)> is_account = [](const std::string&,
                                                                            Role) { return false; };
    int most_verifications = 2;
    std::function<absl::StatusOr<std::string>(const std::string&)> hash = HashSecret;
    std::function<bool(const std::string&, const std::string&)> verify = VerifySecret;
  };
  explicit Authenticator(Options options);

  // UNAUTHENTICATED says the same of an unknown, a wrong and a revoked token.
  absl::StatusOr<Principal> ByToken(const std::string& token) ABSL_LOCKS_EXCLUDED(mutex_);
  // The name of a certificate that the transport has verified. UNAUTHENTICATED: no user is known by
  // a certificate of this name.
  absl::StatusOr<Principal> ByCertificate(const std::string& name) const;
  // An account of this machine. A user known by it has the role that was given. UNAUTHENTICATED:
  // the user was revoked, the name cannot be a user's, or a user of that name is not known by an
  // account.
  absl::StatusOr<Principal> BySystemName(const std::string& name) const;
  // True as long as nobody was ever added.
  bool nobody_known() const { return options_.store->empty(); }

  // The new user's token, which is shown once and stored as a hash. UserStore::Add's errors;
  // ALREADY_EXISTS: an account of the machine has the name and may use the daemon, and the user is
  // not known by it.
  absl::StatusOr<std::string> AddUser(const std::string& name, Role role,
                                      Identities identities = {});
  // Another token of the user's, which expires after `valid`. UserStore::AddToken's errors.
  absl::StatusOr<std::string> AddToken(const std::string& name, absl::Duration valid);
  // Returns whose it was. UserStore::RevokeToken's errors.
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
    return verifying_ < options_.most_verifications;
  }

  const Options options_;
  const std::string fingerprint_key_;  // of this process
  absl::Mutex mutex_;
  int verifying_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;  // of the store, that verified_ is about
  struct Verified {
    Principal principal;
    StoredToken token;
  };
  // One for each token at most, since nothing else is verified.
  std::map<std::string, Verified> verified_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_AUTHENTICATOR_H_
