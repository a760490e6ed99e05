#include "server/sessions/checkpoint/sealed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "proto/coding/coding.h"
#include "server/state/sync_folder.h"

namespace kiln::sessions {
namespace {

constexpr std::string_view kMagic = "kilnkeep";
constexpr size_t kHeadBytes = 24;
constexpr int64_t kTagBytes = cache::Authenticator::kTagBytes;

absl::Status Failed(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", strerror(errno)));
}

}  // namespace

SealedWriter::SealedWriter(std::string path, const cache::Secret& secret, int file)
    : path_(std::move(path)),
      draft_(absl::StrCat(path_, ".draft")),
      secret_(secret),
      file_(file),
      authenticator_(secret.Authenticate()) {
  KILN_CHECK_GE(file_, 0);
}

SealedWriter::~SealedWriter() {
  if (file_ < 0) return;
  close(file_);
  unlink(draft_.c_str());
}

absl::StatusOr<std::unique_ptr<SealedWriter>> SealedWriter::Open(const std::string& path,
                                                                 const cache::Secret& secret,
                                                                 uint32_t version,
                                                                 absl::string_view description,
                                                                 int64_t data_bytes) {
  KILN_CHECK_GE(data_bytes, 0);
  const std::string draft = absl::StrCat(path, ".draft");
  unlink(draft.c_str());
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return Failed("make", draft);
  std::unique_ptr<SealedWriter> writer(new SealedWriter(path, secret, file));
  const int64_t size = static_cast<int64_t>(description.size()) + kSealBytes;
  // Reserves the space before anything is copied. posix_fallocate returns its error.
  errno = posix_fallocate(file, 0, size + data_bytes);
  if (errno != 0) return Failed("reserve room for", draft);
  if (absl::Status status = writer->WriteHead(version, description); !status.ok()) return status;
  writer->left_ = data_bytes;
  return writer;
}

absl::Status SealedWriter::WriteHead(uint32_t version, absl::string_view description) {
  ByteWriter out;
  out.Bytes(kMagic);
  out.Fixed32(version);
  out.Fixed32(0);
  out.Fixed64(description.size());
  const std::string head = out.Take();
  for (const absl::string_view part : {absl::string_view(head), description})
    if (absl::Status status = Add(part); !status.ok()) return status;
  const std::string tag = authenticator_->Finish();
  authenticator_ = secret_.Authenticate();
  return Add(tag);
}

absl::Status SealedWriter::WriteAll(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write", draft_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status SealedWriter::Write(absl::string_view bytes) {
  KILN_CHECK(!is_sealed_) << path_;
  left_ -= static_cast<int64_t>(bytes.size());
  KILN_CHECK_GE(left_, 0) << path_ << " gets more bytes than its description says";
  return Add(bytes);
}

absl::Status SealedWriter::Add(absl::string_view bytes) {
  authenticator_->Update(bytes);
  return WriteAll(bytes);
}

absl::Status SealedWriter::Seal() {
  if (std::exchange(is_sealed_, true)) return absl::OkStatus();
  KILN_CHECK_EQ(left_, 0) << path_ << " has fewer bytes than its description says";
  return WriteAll(authenticator_->Finish());
}

absl::Status SealedWriter::Install() {
  KILN_CHECK_GE(file_, 0) << path_ << " was installed before";
  if (absl::Status status = Seal(); !status.ok()) return status;
  if (rename(draft_.c_str(), path_.c_str()) != 0) return Failed("rename", draft_);
  close(std::exchange(file_, -1));
  return absl::OkStatus();
}

absl::Status SealedWriter::Commit() {
  absl::Status status = Seal();
  if (status.ok() && fsync(file_) != 0) status = Failed("keep", draft_);
  if (status.ok()) status = Install();
  return status.ok() ? state::SyncFolderOf(path_) : status;
}

SealedReader::SealedReader(std::string path, const cache::Secret& secret, int file)
    : path_(std::move(path)), secret_(secret), file_(file), authenticator_(secret.Authenticate()) {
  KILN_CHECK_GE(file_, 0);
}

SealedReader::~SealedReader() { close(file_); }

absl::Status SealedReader::Damaged(absl::string_view how) const {
  return absl::DataLossError(absl::StrCat(path_, " ", how));
}

absl::StatusOr<std::unique_ptr<SealedReader>> SealedReader::Open(const std::string& path,
                                                                 const cache::Secret& secret,
                                                                 uint32_t newest) {
  // O_NONBLOCK: otherwise opening a FIFO would wait for a writer.
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return Failed("read", path);
  std::unique_ptr<SealedReader> reader(new SealedReader(path, secret, file));
  if (absl::Status status = reader->ReadHead(newest); !status.ok()) return status;
  return reader;
}

absl::Status SealedReader::ReadHead(uint32_t newest) {
  struct stat found {};
  if (fstat(file_, &found) != 0) return Failed("read", path_);
  if (!S_ISREG(found.st_mode)) return Damaged("is not a regular file");
  if (found.st_uid != geteuid()) return Damaged("belongs to another user");
  std::string head(kHeadBytes, '\0');
  if (found.st_size < static_cast<off_t>(kHeadBytes)) return Damaged("is cut");
  if (absl::Status status = ReadAll(absl::MakeSpan(head)); !status.ok()) return status;
  ByteReader fields(head);
  if (fields.Bytes(kMagic.size()) != kMagic) return Damaged("is not a checkpoint of a session");
  const uint32_t version = fields.Fixed32();
  if (version > newest) {
    return absl::UnimplementedError(absl::StrCat(path_, " has version ", version,
                                                 " but this daemon knows at most ", newest,
                                                 "; a newer daemon wrote it"));
  }
  version_ = version;
  fields.Fixed32();  // for later versions
  const uint64_t size = fields.Fixed64();
  const auto after_head = static_cast<uint64_t>(found.st_size) - kHeadBytes;
  if (after_head < 2 * kTagBytes || size > after_head - 2 * kTagBytes) return Damaged("is cut");
  data_bytes_ = left_ = static_cast<int64_t>(after_head - 2 * kTagBytes - size);
  description_.resize(size);
  if (absl::Status status = ReadAll(absl::MakeSpan(description_)); !status.ok()) return status;
  authenticator_->Update(head);
  authenticator_->Update(description_);
  std::string tag(kTagBytes, '\0');
  if (absl::Status status = ReadAll(absl::MakeSpan(tag)); !status.ok()) return status;
  if (!cache::SameTag(authenticator_->Finish(), tag))
    return Damaged("is damaged or was written with another key");
  authenticator_ = secret_.Authenticate();
  authenticator_->Update(tag);
  return absl::OkStatus();
}

absl::Status SealedReader::ReadAll(absl::Span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = read(file_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path_);
    if (got == 0) return Damaged("is cut");
    bytes.remove_prefix(static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

absl::Status SealedReader::Read(absl::Span<char> bytes) {
  if (static_cast<int64_t>(bytes.size()) > left_) return Damaged("is cut");
  if (absl::Status status = ReadAll(bytes); !status.ok()) return status;
  left_ -= static_cast<int64_t>(bytes.size());
  KILN_CHECK_GE(left_, 0);
  authenticator_->Update({bytes.data(), bytes.size()});
  return absl::OkStatus();
}

absl::Status SealedReader::Finish() {
  if (left_ != 0) return Damaged("has more bytes than its description says");
  std::string tag(kTagBytes, '\0');
  if (absl::Status status = ReadAll(absl::MakeSpan(tag)); !status.ok()) return status;
  if (!cache::SameTag(authenticator_->Finish(), tag)) return Damaged("is damaged");
  return absl::OkStatus();
}

absl::Status RemoveForGood(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Failed("remove", path);
  return state::SyncFolderOf(path);
}

}  // namespace kiln::sessions
