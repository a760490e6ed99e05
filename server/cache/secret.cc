#include "server/cache/secret.h"

#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/check/check.h"

namespace kiln::cache {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr char kNameAnother[] = "name another folder with --cache_dir or --state_dir";
constexpr size_t kTagBytes = Authenticator::kTagBytes;

absl::Status Failed(const std::string& what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", strerror(errno)));
}

// The file that a path leads to. Another folder can be named for a folder, and not for one of its
// files.
enum class Kind { kFolder, kFile };

// FAILED_PRECONDITION unless only this process's user can access it.
absl::Status CheckPrivate(const std::string& path, const struct stat& found, Kind kind) {
  const bool is_folder = kind == Kind::kFolder;
  const std::string or_another = is_folder ? absl::StrCat(", or ", kNameAnother) : "";
  if (found.st_uid != geteuid()) {
    const std::string remedy =
        is_folder ? kNameAnother
                  : absl::StrCat("if it is the right file, run chown ", geteuid(), " ", path);
    return absl::FailedPreconditionError(
        absl::StrCat(path, " belongs to user ", found.st_uid, ", not to user ", geteuid(),
                     " who runs kilnd, and kilnd trusts its content: ", remedy));
  }
  const mode_t mode = found.st_mode & 07777;
  if ((mode & 077) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s has mode %04o, so other users can access it, and kilnd trusts its "
                      "content: run chmod %04o %s%s",
                      path, mode, is_folder ? 0700 : 0600, path, or_another));
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  size_t filled = 0;
  while (filled < count) {
    // May be interrupted by a signal; see getrandom(2).
    const ssize_t got = getrandom(bytes.data() + filled, count - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return bytes;
}

// Another daemon may create the file at the same time: the first file is kept. It appears with its
// full content, because it is first written under a temporary name.
absl::Status Make(const std::string& path) {
  const std::string draft = absl::StrCat(path, ".", getpid());
  unlink(draft.c_str());
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", path, ": its folder does not exist; make that folder first"));
  }
  if (file < 0) return Failed("make", path);
  const auto remove = absl::MakeCleanup([&] { unlink(draft.c_str()); });
  const std::string bytes = RandomBytes(kSecretBytes);
  const bool written =
      write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  // Otherwise a crash soon after link could leave an empty file under the name.
  const bool kept = fsync(file) == 0;
  close(file);
  if (!written || !kept) return Failed("write", draft);
  // Unlike rename(2), link(2) never replaces an existing file.
  if (link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST) return Failed("make", path);
  return absl::OkStatus();
}

// NOT_FOUND if there is no file. DATA_LOSS: it has another size.
absl::StatusOr<std::string> Read(const std::string& path) {
  // O_NONBLOCK, because opening a FIFO would otherwise wait for a writer. All checks use the open
  // file, which cannot be exchanged between them.
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return absl::NotFoundError(path);
  if (file < 0 && errno == ELOOP) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " is a link, which may lead to another key at any time; name the file "
                     "that it leads to"));
  }
  if (file < 0) return Failed("read", path);
  const auto close_file = absl::MakeCleanup([file] { close(file); });
  struct stat found {};
  if (fstat(file, &found) != 0) return Failed("read", path);
  if (!S_ISREG(found.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a regular file, and a key is in one"));
  }
  if (absl::Status status = CheckPrivate(path, found, Kind::kFile); !status.ok()) return status;
  std::string bytes(kSecretBytes, '\0');
  if (found.st_size == static_cast<off_t>(kSecretBytes) &&
      read(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(kSecretBytes)) {
    return bytes;
  }
  return absl::DataLossError(absl::StrCat(path, " is damaged: it has ", found.st_size,
                                          " bytes, but a key has ", kSecretBytes));
}

}  // namespace

absl::Status OpenPrivateFolder(const std::string& folder) {
  std::filesystem::path path(folder);
  if (!path.has_filename()) path = path.parent_path();
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", folder, ": ", error.message(), "; ", kNameAnother));
  }
  // Only the last folder is made private. Its parents, such as ~/.cache, are shared with others.
  const auto failed = [&](const char* what) {
    return absl::UnavailableError(
        absl::StrCat("cannot ", what, " ", folder, ": ", strerror(errno), "; ", kNameAnother));
  };
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed("make");
  const int opened = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return failed("open");
  const auto close_folder = absl::MakeCleanup([opened] { close(opened); });
  struct stat found {};
  if (fstat(opened, &found) != 0) return failed("open");
  return CheckPrivate(folder, found, Kind::kFolder);
}

Authenticator::Authenticator(absl::string_view key)
    : context_([] {
        EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
        EVP_MAC_CTX* const context = EVP_MAC_CTX_new(hmac);
        EVP_MAC_free(hmac);  // the context has its own reference
        return context;
      }()) {
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_end()};
  EVP_MAC_init(context_, reinterpret_cast<const unsigned char*>(key.data()), key.size(),
               parameters);
}

Authenticator::~Authenticator() { EVP_MAC_CTX_free(context_); }

void Authenticator::Update(absl::string_view data) {
  EVP_MAC_update(context_, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

std::string Authenticator::Finish() {
  std::string tag(kTagBytes, '\0');
  size_t size = 0;
  EVP_MAC_final(context_, reinterpret_cast<unsigned char*>(tag.data()), &size, tag.size());
  // It fails only without memory, where operator new ends the process as well. Without this, the
  // tag would be zeros, which anyone can write.
  KILN_CHECK_EQ(size, kTagBytes);
  return tag;
}

bool SameTag(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::StatusOr<Secret> Secret::Open(const std::string& path) {
  auto bytes = Read(path);
  if (absl::IsDataLoss(bytes.status())) {
    unlink(path.c_str());
    bytes = absl::NotFoundError(path);
  }
  if (absl::IsNotFound(bytes.status())) {
    if (absl::Status made = Make(path); !made.ok()) return made;
    bytes = Read(path);
  }
  if (absl::IsNotFound(bytes.status()))
    return absl::UnavailableError("the key file was removed while kilnd created it");
  if (!bytes.ok()) return bytes.status();
  return Secret(*std::move(bytes));
}

absl::StatusOr<Secret> Secret::OpenExisting(const std::string& path) {
  auto bytes = Read(path);
  if (!bytes.ok()) return bytes.status();
  return Secret(*std::move(bytes));
}

std::string Secret::Fingerprint() const {
  return absl::BytesToHexString(Tag("fingerprint of a key", "").substr(0, 8));
}

std::string Secret::Tag(absl::string_view key_digest, absl::string_view value) const {
  std::string message;
  message.reserve(key_digest.size() + value.size());
  // Unambiguous without a separator, since all digests have the same size.
  absl::StrAppend(&message, key_digest, value);
  std::string tag(kTagBytes, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       reinterpret_cast<unsigned char*>(tag.data()), &size);
  KILN_CHECK_EQ(size, kTagBytes);
  return tag;
}

std::string Secret::Seal(absl::string_view key_digest, absl::string_view value) const {
  std::string sealed = absl::StrCat(Tag(key_digest, value), value);
  KILN_CHECK_EQ(sealed.size(), kTagBytes + value.size());
  return sealed;
}

std::optional<std::string> Secret::Unseal(absl::string_view key_digest,
                                          absl::string_view sealed) const {
  if (sealed.size() < kTagBytes) return std::nullopt;
  const absl::string_view value = sealed.substr(kTagBytes);
  const std::string tag = Tag(key_digest, value);
  if (!SameTag(tag, sealed.substr(0, kTagBytes))) return std::nullopt;
  return std::string(value);
}

}  // namespace kiln::cache
