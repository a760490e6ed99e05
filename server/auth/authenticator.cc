#include "server/auth/authenticator.h"

#include <sodium.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/auth/token.h"
#include "server/errors/errors.h"

namespace kiln::auth {
namespace {

constexpr unsigned long long kPasses = 1;
constexpr size_t kHashMemory = 8 << 20;
constexpr size_t kFingerprintBytes = 32;

absl::Status BadToken() {
  return errors::WithReason(
      absl::UnauthenticatedError("the token is unknown, wrong, expired or revoked; ask an admin of "
                                 "the daemon for a new one (`kiln user token add NAME`)"),
      "BAD_TOKEN");
}

std::string RandomKey() {
  // Idempotent and thread-safe; without it, libsodium's functions are slower or unsafe.
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
    return absl::ResourceExhaustedError("not enough memory to hash a token");
  return std::string(hash);
}

bool VerifySecret(const std::string& hash, const std::string& secret) {
  return crypto_pwhash_str_verify(hash.c_str(), secret.data(), secret.size()) == 0;
}

Authenticator::Authenticator(Options options)
    : options_(std::move(options)), fingerprint_key_(RandomKey()) {
  KILN_CHECK_NE(options_.store, nullptr);
  KILN_CHECK_GT(options_.verifications_max, 0);
}

Authenticator::~Authenticator() {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_EQ(verifying_, 0);
}

void Authenticator::Validate() const {
  KILN_CHECK_GE(verifying_, 0);
  KILN_CHECK_LE(verifying_, options_.verifications_max);
  for (const auto& [fingerprint, verified] : verified_) {
    KILN_CHECK_EQ(fingerprint.size(), kFingerprintBytes);
    KILN_CHECK_EQ(verified.principal.how, "token") << verified.principal.user;
    KILN_CHECK(CheckUserName(verified.principal.user).ok()) << verified.principal.user;
  }
}

std::optional<Principal> Authenticator::Remembered(const std::string& fingerprint) {
  // Read first: after a concurrent change, verified tokens are then dropped once more, rather than
  // kept too long.
  const int64_t now = options_.store->version();
  if (now != version_) {
    verified_.clear();
    version_ = now;
  }
  const auto found = verified_.find(fingerprint);
  if (found == verified_.end() || found->second.token.IsExpired(options_.now()))
    return std::nullopt;
  return found->second.principal;
}

absl::StatusOr<Principal> Authenticator::ByToken(const std::string& token) {
  // Checked before anything else, since the caller chose its length.
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
    // Another thread may have verified the same token meanwhile.
    if (auto known = Remembered(fingerprint)) return *known;
    version = version_;
    ++verifying_;
    KILN_VALIDATE(*this, verified_.size());
  }
  // Looked up again, since the users may have changed meanwhile.
  const auto user = options_.store->FindByToken(parsed->id);
  const StoredToken* stored = user ? user->FindToken(parsed->id) : nullptr;
  const bool right = stored != nullptr && !stored->IsExpired(options_.now()) &&
                     options_.verify(stored->hash, parsed->secret);
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_GT(verifying_, 0);
  --verifying_;
  if (!right) return BadToken();
  const Principal principal{user->name, user->role, "token"};
  // A result from before a change must not be remembered after it.
  if (version == options_.store->version() && version == version_)
    verified_[fingerprint] = {principal, *stored};
  KILN_VALIDATE(*this, verified_.size());
  return principal;
}

absl::StatusOr<Principal> Authenticator::ByCertificate(const std::string& name) const {
  const auto user = options_.store->Find(name);
  if (user && !user->revoked && user->identities.certificate)
    return Principal{user->name, user->role, "certificate"};
  return errors::WithReason(
      absl::UnauthenticatedError("the common name of the certificate is not a user of this daemon; "
                                 "ask an admin to add it (`kiln user add NAME --by certificate`)"),
      "UNKNOWN_CERTIFICATE");
}

absl::StatusOr<Principal> Authenticator::BySystemName(const std::string& name) const {
  const auto added = options_.store->Find(name);
  if (added && !added->revoked && !added->identities.system) {
    return errors::WithReason(
        absl::UnauthenticatedError(absl::StrCat(
            "this system account has the same name as the user ", name,
            ", who is identified by a token and may be another person; use that user's token, or "
            "ask an admin to revoke the user and add the account with `kiln user add ",
            name, " --by system`")),
        "ANOTHER_USERS_NAME", {{"user", name}});
  }
  if (CheckUserName(name).ok() && (!added || !added->revoked))
    return Principal{name, added ? added->role : Role::kUser, "socket"};
  return errors::WithReason(
      absl::UnauthenticatedError("this system account may not use the daemon; ask an admin to add "
                                 "it (`kiln user add NAME --by system`)"),
      "SYSTEM_USER");
}

absl::StatusOr<Authenticator::NewToken> Authenticator::Make(absl::Duration valid) const {
  const Token token = MakeToken(options_.key);
  auto hash = options_.hash(token.secret);
  if (!hash.ok()) return hash.status();
  NewToken made{{.id = token.id,
                 .hash = *std::move(hash),
                 .created = options_.now(),
                 .expires = std::nullopt,
                 .key = options_.key.Fingerprint()},
                Text(token)};
  if (valid < absl::InfiniteDuration()) made.stored.expires = made.stored.created + valid;
  return made;
}

absl::StatusOr<std::string> Authenticator::AddUser(const std::string& name, Role role,
                                                   Identities identities) {
  if (!identities.system && CheckUserName(name).ok() && options_.is_account(name, role)) {
    return errors::WithReason(
        absl::AlreadyExistsError(
            absl::StrCat("this machine has a system account ", name,
                         ", which may use the daemon through its socket and would share sessions "
                         "with the user; choose another name, or run `kiln user add ",
                         name, " --by system` if the user is this account")),
        "ACCOUNT_EXISTS", {{"user", name}});
  }
  auto token = Make(absl::InfiniteDuration());
  if (!token.ok()) return token.status();
  absl::Status added = options_.store->Add(
      {name, role, identities, token->stored.created, std::nullopt, {token->stored}});
  if (!added.ok()) return added;
  return token->text;
}

absl::StatusOr<std::string> Authenticator::AddToken(const std::string& name, absl::Duration valid) {
  auto token = Make(valid);
  if (!token.ok()) return token.status();
  if (absl::Status added = options_.store->AddToken(name, token->stored); !added.ok()) return added;
  return token->text;
}

absl::StatusOr<std::string> Authenticator::RevokeToken(const std::string& token_id) {
  return options_.store->RevokeToken(token_id);
}

absl::Status Authenticator::RevokeUser(const std::string& name) {
  return options_.store->Revoke(name, options_.now());
}

}  // namespace kiln::auth
