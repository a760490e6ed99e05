#include "server/backup/archive.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/check/check.h"
#include "proto/coding/coding.h"
#include "server/state/small_file.h"
#include "server/state/sync_folder.h"

namespace kiln::backup {
namespace {

constexpr absl::string_view kMagic = "kiln state ";
constexpr int kVersion = 1;
constexpr size_t kFirstLineBytesMax = 40;
constexpr size_t kKeyBytes = crypto_secretstream_xchacha20poly1305_KEYBYTES;
constexpr size_t kHeaderBytes = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr size_t kExtraBytes = crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr size_t kChunkBytes = 1 << 20;  // of plain text, at most
constexpr size_t kNameBytesMax = 127;    // so that its size is one byte

std::string FirstLine() { return absl::StrCat(kMagic, kVersion, "\n"); }

absl::Status CannotDo(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", strerror(errno)));
}

const unsigned char* Unsigned(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* Unsigned(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

// The plain text of an archive, chunk by chunk.
class PlainReader {
 public:
  PlainReader(std::istream& file, const std::string& path) : file_(file), path_(path) {}

  absl::Status Begin(absl::string_view key) {
    std::string line;
    // A file that is no archive may have any number of bytes in its first line.
    while (line.size() <= kFirstLineBytesMax && file_.peek() != '\n' && file_.peek() != EOF)
      line.push_back(static_cast<char>(file_.get()));
    if (file_.get() != '\n' || !absl::StartsWith(line, kMagic)) return Bad("is no archive");
    int version = 0;
    if (!absl::SimpleAtoi(absl::StripPrefix(line, kMagic), &version) || version != kVersion) {
      return Bad(absl::StrCat("has the format \"", line, "\", and this kilnd reads \"", kMagic,
                              kVersion, "\"; use the version that wrote it, or a later one"));
    }
    std::string header(kHeaderBytes, '\0');
    if (!file_.read(header.data(), static_cast<std::streamsize>(header.size()))) return Cut();
    if (crypto_secretstream_xchacha20poly1305_init_pull(&state_, Unsigned(header), Unsigned(key)) !=
        0)
      return Bad("is damaged");
    return absl::OkStatus();
  }

  // Appends at least `bytes` bytes to what was read and not taken. INVALID_ARGUMENT: there are
  // fewer.
  absl::Status Need(size_t bytes) {
    while (plain_.size() < bytes) {
      if (is_at_end_) return Cut();
      if (absl::Status status = ReadChunk(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  // Returns the next bytes, and forgets them. Requires: Need(bytes) has succeeded.
  std::string Take(size_t bytes) {
    KILN_CHECK_LE(bytes, plain_.size());
    std::string taken = plain_.substr(0, bytes);
    plain_.erase(0, bytes);
    return taken;
  }
  absl::StatusOr<bool> IsAtEnd() {
    while (plain_.empty() && !is_at_end_)
      if (absl::Status status = ReadChunk(); !status.ok()) return status;
    return plain_.empty();
  }
  size_t available() const { return plain_.size(); }

  absl::Status Bad(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, " ", what));
  }

 private:
  absl::Status Cut() const { return Bad("was cut: its end is missing"); }

  absl::Status ReadChunk() {
    std::string size_text(4, '\0');
    if (!file_.read(size_text.data(), 4)) return Cut();
    const uint32_t size = ByteReader(size_text).Fixed32();
    if (size < kExtraBytes || size > kChunkBytes + kExtraBytes) return Bad("is damaged");
    std::string sealed(size, '\0');
    if (!file_.read(sealed.data(), static_cast<std::streamsize>(sealed.size()))) return Cut();
    std::string chunk(size - kExtraBytes, '\0');
    unsigned char tag = 0;
    const std::string covered = is_first_ ? FirstLine() : "";
    if (crypto_secretstream_xchacha20poly1305_pull(
            &state_, Unsigned(chunk), nullptr, &tag, Unsigned(absl::string_view(sealed)),
            sealed.size(), Unsigned(absl::string_view(covered)), covered.size()) != 0) {
      return Bad(is_first_ ? "was changed, or was made with another key than --state_key_file has"
                           : "was changed or is damaged");
    }
    is_first_ = false;
    plain_ += chunk;
    if (tag != crypto_secretstream_xchacha20poly1305_TAG_FINAL) return absl::OkStatus();
    is_at_end_ = true;
    return file_.peek() == std::istream::traits_type::eof() ? absl::OkStatus()
                                                            : Bad("has more after its end");
  }

  std::istream& file_;
  const std::string& path_;
  crypto_secretstream_xchacha20poly1305_state state_{};
  std::string plain_;
  bool is_first_ = true;
  bool is_at_end_ = false;
};

// Writes a file that the archive contains.
absl::Status WriteFile(PlainReader& reader, const std::string& path, uint64_t bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return CannotDo("make", path);
  absl::Status status;
  while (bytes > 0 && status.ok()) {
    status = reader.Need(1);
    if (!status.ok()) break;
    const std::string part =
        reader.Take(static_cast<size_t>(std::min<uint64_t>(bytes, reader.available())));
    if (write(file, part.data(), part.size()) != static_cast<ssize_t>(part.size()))
      status = CannotDo("write", path);
    bytes -= part.size();
  }
  if (status.ok() && fsync(file) != 0) status = CannotDo("write", path);
  close(file);
  return status;
}

}  // namespace

struct ArchiveWriter::Cipher {
  crypto_secretstream_xchacha20poly1305_state state{};
  bool is_first = true;
};

ArchiveWriter::ArchiveWriter(std::string path, int file)
    : path_(std::move(path)), file_(file), cipher_(std::make_unique<Cipher>()) {}

ArchiveWriter::~ArchiveWriter() {
  close(file_);
  if (!is_finished_) unlink(absl::StrCat(path_, ".new").c_str());
}

absl::StatusOr<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Create(const std::string& path,
                                                                     absl::string_view key) {
  KILN_CHECK_EQ(key.size(), kKeyBytes);
  if (sodium_init() < 0) return absl::InternalError("libsodium cannot be used");
  const std::string draft = absl::StrCat(path, ".new");
  unlink(draft.c_str());
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return CannotDo("make", draft);
  std::unique_ptr<ArchiveWriter> writer(new ArchiveWriter(path, file));
  std::string header(kHeaderBytes, '\0');
  crypto_secretstream_xchacha20poly1305_init_push(&writer->cipher_->state, Unsigned(header),
                                                  Unsigned(key));
  if (absl::Status status = writer->WriteAll(FirstLine() + header); !status.ok()) return status;
  return writer;
}

absl::Status ArchiveWriter::WriteAll(absl::string_view data) {
  while (!data.empty()) {
    const ssize_t written = write(file_, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return CannotDo("write", path_);
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status ArchiveWriter::WriteChunk(bool is_last) {
  std::string sealed(chunk_.size() + kExtraBytes, '\0');
  const std::string covered = std::exchange(cipher_->is_first, false) ? FirstLine() : "";
  crypto_secretstream_xchacha20poly1305_push(
      &cipher_->state, Unsigned(sealed), nullptr, Unsigned(absl::string_view(chunk_)),
      chunk_.size(), Unsigned(absl::string_view(covered)), covered.size(),
      is_last ? crypto_secretstream_xchacha20poly1305_TAG_FINAL : 0);
  chunk_.clear();
  ByteWriter size;
  size.Fixed32(static_cast<uint32_t>(sealed.size()));
  if (absl::Status status = WriteAll(size.Take()); !status.ok()) return status;
  return WriteAll(sealed);
}

absl::Status ArchiveWriter::Put(absl::string_view data) {
  while (!data.empty()) {
    const size_t part = std::min(data.size(), kChunkBytes - chunk_.size());
    chunk_.append(data.data(), part);
    data.remove_prefix(part);
    if (chunk_.size() < kChunkBytes) continue;
    if (absl::Status status = WriteChunk(/*is_last=*/false); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ArchiveWriter::Add(const std::string& name, std::istream& from, int64_t bytes) {
  KILN_CHECK(!name.empty() && name.size() <= kNameBytesMax && bytes >= 0) << name;
  ByteWriter head;
  head.Text(name);
  head.Fixed64(static_cast<uint64_t>(bytes));
  if (absl::Status status = Put(head.Take()); !status.ok()) return status;
  std::string part(kChunkBytes, '\0');
  for (int64_t left = bytes; left > 0;) {
    const auto wanted =
        static_cast<std::streamsize>(std::min<int64_t>(left, static_cast<int64_t>(part.size())));
    if (!from.read(part.data(), wanted))
      return absl::UnavailableError(absl::StrCat("cannot read ", name, ": it became shorter"));
    if (absl::Status status = Put({part.data(), static_cast<size_t>(wanted)}); !status.ok())
      return status;
    left -= wanted;
  }
  files_.push_back({name, bytes});
  return absl::OkStatus();
}

absl::Status ArchiveWriter::Finish() {
  if (absl::Status status = WriteChunk(/*is_last=*/true); !status.ok()) return status;
  if (fsync(file_) != 0) return CannotDo("write", path_);
  if (rename(absl::StrCat(path_, ".new").c_str(), path_.c_str()) != 0)
    return CannotDo("make", path_);
  is_finished_ = true;
  // Without that, a power failure may still take it away: the archive is whole.
  state::SyncFolderOf(path_).IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ArchivedFile>> Extract(const std::string& path, absl::string_view key,
                                                  const std::string& folder,
                                                  bool (*is_name)(absl::string_view name)) {
  KILN_CHECK_EQ(key.size(), kKeyBytes);
  if (sodium_init() < 0) return absl::InternalError("libsodium cannot be used");
  const auto opened = state::OpenRegularFile(path, "the archive");
  if (!opened.ok()) return opened.status();
  // The file that was opened, whatever the path leads to now.
  std::ifstream file(absl::StrCat("/proc/self/fd/", *opened), std::ios::binary);
  close(*opened);
  if (!file) return CannotDo("read", path);
  PlainReader reader(file, path);
  if (absl::Status status = reader.Begin(key); !status.ok()) return status;
  std::vector<ArchivedFile> files;
  while (true) {
    const auto is_at_end = reader.IsAtEnd();
    if (!is_at_end.ok()) return is_at_end.status();
    if (*is_at_end) return files;
    if (absl::Status status = reader.Need(1); !status.ok()) return status;
    const size_t name_bytes = static_cast<unsigned char>(reader.Take(1)[0]);
    if (name_bytes == 0 || name_bytes > kNameBytesMax) return reader.Bad("is damaged");
    if (absl::Status status = reader.Need(name_bytes + 8); !status.ok()) return status;
    const std::string name = reader.Take(name_bytes);
    const uint64_t bytes = ByteReader(reader.Take(8)).Fixed64();
    if (!is_name(name)) return reader.Bad("has a file that this version does not know");
    if (const size_t slash = name.find('/'); slash != std::string::npos)
      mkdir(absl::StrCat(folder, "/", name.substr(0, slash)).c_str(), 0700);
    if (absl::Status status = WriteFile(reader, absl::StrCat(folder, "/", name), bytes);
        !status.ok())
      return status;
    files.push_back({name, static_cast<int64_t>(bytes)});
  }
}

}  // namespace kiln::backup
