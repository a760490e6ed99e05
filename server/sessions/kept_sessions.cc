#include "server/sessions/kept_sessions.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/digest/sha256.h"
#include "server/log/log.h"
#include "server/quota/refusal.h"

namespace kiln::sessions {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".session";

// With what a user's files begin: his name may have what the name of a file may not.
std::string PrefixOf(const std::string& user) {
  return absl::StrCat("u", Sha256Hex(user).substr(0, 16), "-");
}

// Sessions' ids are secret, and names are used again by other daemons.
std::string FileName(const SessionImage& image) {
  return absl::StrCat(PrefixOf(image.user), image.identity.name, "-",
                      Sha256Hex(image.identity.id).substr(0, 16), kSuffix);
}

void LogRefused(const std::string& path, const absl::Status& why, absl::string_view file) {
  log::Error("kept_session_refused",
             {{"file", path},
              {"why", std::string(why.message())},
              {"lost", "the session with its tensors and programs; its client is told"},
              {"the_file", std::string(file)}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeptSessions>> KeptSessions::Open(Options options) {
  if (absl::Status status = cache::OpenPrivateFolder(options.folder); !status.ok()) return status;
  const std::string path = absl::StrCat(options.folder, "/lock");
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (lock < 0)
    return absl::UnavailableError(absl::StrCat("cannot make ", path, ": ", strerror(errno)));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return absl::FailedPreconditionError(absl::StrCat("another kilnd keeps its sessions in ",
                                                      options.folder,
                                                      "; name another folder with --state_dir"));
  }
  auto secret = cache::Secret::Open(absl::StrCat(options.folder, "/sessions.key"));
  if (!secret.ok()) {
    close(lock);
    return secret.status();
  }
  return std::unique_ptr<KeptSessions>(
      new KeptSessions(std::move(options), *std::move(secret), lock));
}

KeptSessions::~KeptSessions() { close(lock_); }

std::vector<KeptSessions::Kept> KeptSessions::List() {
  std::vector<Kept> all;
  std::vector<fs::path> drafts;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    const std::string path = entry.path();
    // Of a daemon that did not get to its end.
    if (entry.path().extension() == ".draft") drafts.push_back(entry.path());
    if (entry.path().extension() != kSuffix) continue;
    auto reader = SealedReader::Open(path, secret_, kImageVersion);
    absl::Status status = reader.status();
    if (status.ok()) {
      auto image = Decode((*reader)->description(), (*reader)->version());
      status = image.status();
      if (status.ok() && image->data_bytes() != (*reader)->data_bytes())
        status = absl::DataLossError(absl::StrCat(path, " does not have the bytes it describes"));
      if (status.ok()) all.push_back({path, *std::move(image)});
    }
    if (status.ok()) continue;
    if (absl::IsDataLoss(status)) drafts.push_back(entry.path());
    LogRefused(path, status, absl::IsDataLoss(status) ? "is removed" : "is left where it is");
  }
  for (const fs::path& draft : drafts) fs::remove(draft, error);
  return all;
}

absl::StatusOr<std::unique_ptr<SealedReader>> KeptSessions::Read(const Kept& kept) const {
  return SealedReader::Open(kept.path, secret_, kImageVersion);
}

int64_t KeptSessions::BytesOnDisk(const std::string& prefix, const std::string& except) const {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    const std::string name = entry.path().filename();
    if (!absl::StartsWith(name, prefix) || name == except) continue;
    const auto size = entry.file_size(error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

int64_t KeptSessions::BytesOf(const std::string& user) const {
  return BytesOnDisk(PrefixOf(user), "");
}

absl::Status KeptSessions::CheckRoom(const SessionImage& image, const std::string& name,
                                     int64_t bytes) const {
  // The session's earlier file gives way to this one.
  const int64_t used = BytesOnDisk("", name);
  if (bytes > options_.limit_bytes - used) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes do not fit: kept sessions take ", used, " of ",
                     options_.limit_bytes, " bytes of disk; raise state.session_limit"));
  }
  const int64_t limit = options_.user_limit_bytes ? options_.user_limit_bytes(image.user) : 0;
  if (limit <= 0) return absl::OkStatus();
  const int64_t his = BytesOnDisk(PrefixOf(image.user), name);
  if (bytes <= limit - his) return absl::OkStatus();
  return quota::Refusal({image.user, quota::Resource::kDisk}, bytes, his, limit);
}

absl::Status KeptSessions::Save(const SessionImage& image, Patience& patience) {
  const std::string description = Encode(image);
  const int64_t bytes = image.data_bytes() + static_cast<int64_t>(description.size()) + kSealBytes;
  const std::string name = FileName(image);
  if (absl::Status status = CheckRoom(image, name, bytes); !status.ok()) return status;
  auto writer = SealedWriter::Open(absl::StrCat(options_.folder, "/", name), secret_, kImageVersion,
                                   description, image.data_bytes());
  if (!writer.ok()) return writer.status();
  if (absl::Status status = WriteBytes(image, patience, **writer); !status.ok()) return status;
  return (*writer)->Commit();
}

}  // namespace kiln::sessions
