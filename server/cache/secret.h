// Protects files whose content the daemon executes: the kernel cache's folder is private to its
// user, and each row has a keyed hash that no one else can make.
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

// Creates the folder with mode 0700 if it does not exist. FAILED_PRECONDITION: it belongs to
// another user, or others may enter it; the message says what to do. UNAVAILABLE: it cannot be
// created.
absl::Status OpenPrivateFolder(const std::string& folder);

// HMAC-SHA256 (RFC 2104) of data that comes in pieces. Used by one thread at a time.
class Authenticator {
 public:
  static constexpr size_t kTagBytes = 32;

  explicit Authenticator(absl::string_view key);
  ~Authenticator();
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  void Update(absl::string_view data);
  // Returns the tag. Nothing may be called afterwards.
  std::string Finish();

 private:
  evp_mac_ctx_st* const context_;
};

// Whether two tags are equal, in constant time, so that the time does not reveal how much of a
// forged tag is right.
bool SameTag(absl::string_view a, absl::string_view b);

// Immutable; thread-safe.
class Secret {
 public:
  // Reads the 32 bytes in the file `path`, which is created with random bytes and mode 0600 if it
  // does not exist. A file of another size is replaced; data sealed with it is lost.
  // FAILED_PRECONDITION: it is not a regular file, belongs to another user, or others may read it.
  // UNAVAILABLE: it can be neither read nor created.
  static absl::StatusOr<Secret> Open(const std::string& path);
  // The same, but NOT_FOUND if it does not exist, DATA_LOSS if it has another size.
  static absl::StatusOr<Secret> OpenExisting(const std::string& path);

  // 16 digits that distinguish this key from others, and reveal nothing else about it.
  std::string Fingerprint() const;

  // For data that is too large for Seal.
  std::unique_ptr<Authenticator> Authenticate() const {
    return std::make_unique<Authenticator>(bytes_);
  }
  // Returns a tag followed by `value`. The tag is the HMAC-SHA256 (RFC 2104) of the value's key,
  // which is a digest, and the value.
  std::string Seal(absl::string_view key_digest, absl::string_view value) const;
  // Returns the value that was sealed under this key; nullopt if key, value or tag differ.
  std::optional<std::string> Unseal(absl::string_view key_digest, absl::string_view sealed) const;

 private:
  explicit Secret(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string Tag(absl::string_view key_digest, absl::string_view value) const;

  std::string bytes_;
};

}  // namespace kiln::cache

#endif  // KILN_SERVER_CACHE_SECRET_H_
