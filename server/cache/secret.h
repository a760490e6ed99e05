// Who may write what the daemon executes: the kernel cache's folder is its user's alone, and each
// row carries a keyed hash that nobody else can make.
#ifndef KILN_SERVER_CACHE_SECRET_H_
#define KILN_SERVER_CACHE_SECRET_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_mac_ctx_st;  // OpenSSL's EVP_MAC_CTX

namespace kiln::cache {

// Makes the folder with mode 0700 if it is not there. FAILED_PRECONDITION: it belongs to somebody
// else, or others may enter it; the message says what to do. UNAVAILABLE: it cannot be made.
absl::Status OpenPrivateFolder(const std::string& folder);

// HMAC-SHA256 (RFC 2104) of data that comes piece by piece. For one thread at a time.
class Authenticator {
 public:
  static constexpr size_t kTagBytes = 32;

  explicit Authenticator(absl::string_view key);
  ~Authenticator();
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  void Update(absl::string_view data);
  // The tag. Ends this: nothing may be called afterwards.
  std::string Finish();

 private:
  evp_mac_ctx_st* const context_;
};

// Whether two tags are the same, in constant time: the time does not tell how much of a forged one
// is right.
bool SameTag(absl::string_view a, absl::string_view b);

// Immutable; thread-safe.
class Secret {
 public:
  // The 32 bytes in the file `path`, which is made of random ones with mode 0600 if it is not
  // there. A file of another size is replaced: what was written under it is lost.
  // FAILED_PRECONDITION: it is no regular file, belongs to somebody else, or others may read it.
  // UNAVAILABLE: it can be neither read nor made.
  static absl::StatusOr<Secret> Open(const std::string& path);
  // The same, but NOT_FOUND if it is not there, DATA_LOSS if it has another size.
  static absl::StatusOr<Secret> OpenExisting(const std::string& path);

  // 16 digits that tell this key from others, and nothing else about it.
  std::string Fingerprint() const;

  // Of what is too large for Seal.
  std::unique_ptr<Authenticator> Authenticate() const {
    return std::make_unique<Authenticator>(bytes_);
  }
  // `value` behind a tag: HMAC-SHA256 (RFC 2104) of the key it stands under, which is a digest, and
  // the value.
  std::string Seal(absl::string_view key_digest, absl::string_view value) const;
  // The value that was sealed under this key; nothing if key, value or tag is another.
  std::optional<std::string> Unseal(absl::string_view key_digest, absl::string_view sealed) const;

 private:
  explicit Secret(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string Tag(absl::string_view key_digest, absl::string_view value) const;

  std::string bytes_;
};

}  // namespace kiln::cache

#endif  // KILN_SERVER_CACHE_SECRET_H_
