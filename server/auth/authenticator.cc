#include "server/auth/authenticator.h"

#include <sodium.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/auth/token.h"
#include "server/errors/errors.h"

namespace kiln::auth {
namespace {

constexpr unsigned long long kPasses = 1;
constexpr size_t kHashMemory = 8 << 20;
constexpr size_t kFingerprintBytes = 32;

absl::Status BadToken() {
  return errors::WithReason(
      absl::UnauthenticatedError("the token is unknown, wrong or revoked; an admin of the daemon "
                                 "makes a new one with `kiln user add NAME`"),
      "BAD_TOKEN");
}

std::string RandomKey() {
  // Idempotent and thread-safe; without it libsodium's functions are slower or not safe.
  [[maybe_unused]] const int ready = sodium_init();
  std::string key(crypto_generichash_KEYBYTES, '\0');
  randombytes_buf(key.data(), key.size());
  return key;
}

std::string Fingerprint(const std::string& token, const std::string& key) {
  std::string hash(kFingerprintBytes, '\0');
  crypto_generichash(reinterpret_cast<unsigned char*>(hash.data()), hash.size(),
                     reinterpret_cast<const unsigned char*>(token.data()), token.size(),
                     reinterpret_cast<const unsigned char*>(key.data()), key.size());
  return hash;
}

}  // namespace

absl::StatusOr<std::string> HashSecret(const std::string& secret) {
  char hash[crypto_pwhash_STRBYTES];
  if (crypto_pwhash_str(hash, secret.data(), secret.size(), kPasses, kHashMemory) != 0)
    return absl::ResourceExhaustedError("there is no memory to hash a token");
  return std::string(hash);
}

bool VerifySecret(const std::string& hash, const std::string& secret) {
  return crypto_pwhash_str_verify(hash.c_str(), secret.data(), secret.size()) == 0;
}

Authenticator::Authenticator(Options options)
    : options_(std::move(options)), fingerprint_key_(RandomKey()) {}

std::optional<Principal> Authenticator::Remembered(const std::string& fingerprint) {
  // Asked first: a change in between makes them forgotten once more, not too long remembered.
  const int64_t now = options_.store->version();
  if (now != version_) {
    verified_.clear();
    version_ = now;
  }
  const auto found = verified_.find(fingerprint);
  if (found == verified_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<Principal> Authenticator::ByToken(const std::string& token) {
  // Before anything is made of it: whoever calls chose its length.
  if (token.size() > 200) return BadToken();
  const std::string fingerprint = Fingerprint(token, fingerprint_key_);
  {
    absl::MutexLock lock(&mutex_);
    if (auto known = Remembered(fingerprint)) return *known;
  }
  const auto parsed = ParseToken(token, options_.key);
  if (!parsed || !options_.store->FindByToken(parsed->id)) return BadToken();
  int64_t version = 0;
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &Authenticator::HasRoom));
    // Somebody with the same token may have been before us.
    if (auto known = Remembered(fingerprint)) return *known;
    version = version_;
    ++verifying_;
  }
  // Again: the users may have changed meanwhile.
  const auto user = options_.store->FindByToken(parsed->id);
  const bool right = user && options_.verify(user->hash, parsed->secret);
  absl::MutexLock lock(&mutex_);
  --verifying_;
  if (!right) return BadToken();
  const Principal principal{user->name, user->role, "token"};
  // What was found before a change is not remembered after it.
  if (version == options_.store->version() && version == version_)
    verified_[fingerprint] = principal;
  return principal;
}

absl::StatusOr<Principal> Authenticator::ByCertificate(const std::string& name) const {
  const auto user = options_.store->FindByName(name);
  if (user) return Principal{user->name, user->role, "certificate"};
  return errors::WithReason(
      absl::UnauthenticatedError("the name in the certificate is no user's of this daemon, or is "
                                 "revoked; an admin adds it with `kiln user add NAME`"),
      "UNKNOWN_CERTIFICATE");
}

absl::StatusOr<Principal> Authenticator::BySystemName(const std::string& name) const {
  const auto added = options_.store->Find(name);
  if (CheckUserName(name).ok() && (!added || !added->revoked))
    return Principal{name, added ? added->role : Role::kUser, "socket"};
  return errors::WithReason(
      absl::UnauthenticatedError("this user of the system may not use the daemon; an admin of the "
                                 "daemon lets him in with `kiln user add NAME`"),
      "SYSTEM_USER");
}

absl::StatusOr<std::string> Authenticator::AddUser(const std::string& name, Role role) {
  const Token token = MakeToken(options_.key);
  auto hash = options_.hash(token.secret);
  if (!hash.ok()) return hash.status();
  absl::Status added =
      options_.store->Add({name, role, token.id, *std::move(hash), options_.now(), std::nullopt});
  if (!added.ok()) return added;
  return Text(token);
}

absl::Status Authenticator::RevokeUser(const std::string& name) {
  return options_.store->Revoke(name, options_.now());
}

}  // namespace kiln::auth
