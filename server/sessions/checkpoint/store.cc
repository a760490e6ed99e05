#include "server/sessions/checkpoint/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/check/check.h"
#include "proto/digest/sha256.h"
#include "server/log/log.h"
#include "server/quota/refusal.h"

namespace kiln::sessions {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".session";
constexpr char kAttempts[] = ".attempts";

// The prefix of a user's files. A hash, because the user's name may have characters that file names
// may not have.
std::string PrefixOf(const std::string& user) {
  return absl::StrCat("u", Sha256Hex(user).substr(0, 16), "-");
}

// The stem of a session's files, before a dot. Hashes the session's id, because it is secret; the
// id is needed because other daemons use the same session names.
std::string StemOf(const SessionIdentity& identity, const std::string& user) {
  return absl::StrCat(PrefixOf(user), identity.name, "-", Sha256Hex(identity.id).substr(0, 16));
}

// Parses the path of a segment; nullopt if it is not one.
struct SegmentName {
  std::string stem;
  uint64_t number = 0;
};
std::optional<SegmentName> SegmentOf(absl::string_view path) {
  SegmentName segment;
  if (!absl::ConsumeSuffix(&path, ".journal")) return std::nullopt;
  const size_t dot = path.rfind('.');
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(path.substr(dot + 1), &segment.number) ||
      segment.number == 0)
    return std::nullopt;
  segment.stem = std::string(path.substr(0, dot));
  return segment;
}

std::string AttemptsPath(const StoredSession& stored) {
  return absl::StrCat(absl::StripSuffix(stored.path, kSuffix), kAttempts);
}

// True if a file does not have its session's own name. A copy must not be loaded: it would take the
// number and the name of the original, and end it.
bool IsCopy(const fs::path& path, const Checkpoint& checkpoint) {
  const std::string own = absl::StrCat(StemOf(checkpoint.identity, checkpoint.user), kSuffix);
  if (path.filename() == own) return false;
  log::Warning("kept_session_ignored",
               {{"file", path},
                {"why", absl::StrCat("it is a copy, because the session's file is named ", own,
                                     "; keep copies in another folder")}});
  return true;
}

void LogRefused(const std::string& path, const absl::Status& why, absl::string_view file) {
  log::Error("kept_session_refused",
             {{"file", path},
              {"why", std::string(why.message())},
              {"lost", "the session with its tensors and programs; its client gets an error"},
              {"the_file", std::string(file)}});
}

}  // namespace

std::string ThisBoot() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return boot;
}

absl::StatusOr<std::unique_ptr<CheckpointStore>> CheckpointStore::Open(Options options) {
  if (absl::Status status = cache::OpenPrivateFolder(options.folder); !status.ok()) return status;
  const std::string path = absl::StrCat(options.folder, "/lock");
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (lock < 0)
    return absl::UnavailableError(absl::StrCat("cannot make ", path, ": ", strerror(errno)));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return absl::FailedPreconditionError(absl::StrCat("another kilnd stores its sessions in ",
                                                      options.folder,
                                                      "; use another folder with --state_dir"));
  }
  auto secret = cache::Secret::Open(absl::StrCat(options.folder, "/sessions.key"));
  if (!secret.ok()) {
    close(lock);
    return secret.status();
  }
  return std::unique_ptr<CheckpointStore>(
      new CheckpointStore(std::move(options), *std::move(secret), lock));
}

CheckpointStore::~CheckpointStore() { close(lock_); }

std::vector<StoredSession> CheckpointStore::List() {
  std::vector<StoredSession> all;
  std::vector<fs::path> drafts;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    const std::string path = entry.path();
    // Left by a daemon that was killed.
    if (entry.path().extension() == ".draft") drafts.push_back(entry.path());
    if (entry.path().extension() == kAttempts &&
        !fs::exists(fs::path(path).replace_extension(kSuffix), error))
      drafts.push_back(entry.path());
    if (entry.path().extension() != kSuffix) continue;
    auto reader = SealedReader::Open(path, secret_, kCheckpointVersion);
    absl::Status status = reader.status();
    if (status.ok()) {
      auto checkpoint = Decode((*reader)->description(), (*reader)->version());
      status = checkpoint.status();
      if (status.ok() && checkpoint->data_bytes() != (*reader)->data_bytes())
        status = absl::DataLossError(
            absl::StrCat(path, " has fewer or more bytes than its description says"));
      if (status.ok() && IsCopy(entry.path(), *checkpoint)) continue;
      if (status.ok()) all.push_back({path, *std::move(checkpoint)});
    }
    if (status.ok()) continue;
    if (absl::IsDataLoss(status)) drafts.push_back(entry.path());
    LogRefused(path, status, absl::IsDataLoss(status) ? "is removed" : "is left unchanged");
  }
  for (const fs::path& draft : drafts) fs::remove(draft, error);
  AddSegments(&all);
  return all;
}

void CheckpointStore::AddSegments(std::vector<StoredSession>* all) const {
  std::map<std::string, StoredSession*> by_stem;
  for (StoredSession& stored : *all)
    by_stem[std::string(absl::StripSuffix(stored.path, kSuffix))] = &stored;
  std::map<std::pair<std::string, uint64_t>, std::string> segments;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    const std::string path = entry.path();
    if (auto segment = SegmentOf(path)) segments[{segment->stem, segment->number}] = path;
  }
  for (const auto& [segment, path] : segments) {
    const auto& [stem, number] = segment;
    const auto found = by_stem.find(stem);
    if (found != by_stem.end() && found->second->checkpoint.log != 0 &&
        number >= found->second->checkpoint.log) {
      found->second->log.push_back(path);
    } else if (found != by_stem.end() || !fs::exists(absl::StrCat(stem, kSuffix))) {
      // Out of date: a newer checkpoint exists, or none does.
      fs::remove(path, error);
    }
  }
  for (StoredSession& stored : *all) {
    if (stored.checkpoint.parked) stored.name = stored.checkpoint.parked->name;
    if (stored.log.empty()) continue;
    const std::string name = SessionLogReader::NameIn(stored.log.back(), secret_);
    if (!name.empty()) stored.name = name;
  }
}

absl::Status CheckpointStore::Remove(const StoredSession& stored) {
  // The checkpoint first: segments without one are ignored.
  const absl::Status status = RemoveForGood(stored.path);
  for (const std::string& segment : stored.log) unlink(segment.c_str());
  ForgetAttempts(stored);
  return status;
}

int CheckpointStore::CountAttempt(const StoredSession& stored) {
  const std::string path = AttemptsPath(stored);
  // One byte per attempt. If it cannot be written, attempts are not counted.
  std::ofstream(path, std::ios::app) << '.';
  std::error_code error;
  const auto attempts = fs::file_size(path, error);
  return error ? 1 : static_cast<int>(attempts);
}

void CheckpointStore::ForgetAttempts(const StoredSession& stored) {
  unlink(AttemptsPath(stored).c_str());
}

LogLocation CheckpointStore::LocationOf(const SessionIdentity& identity,
                                        const std::string& user) const {
  return {absl::StrCat(options_.folder, "/", StemOf(identity, user)), identity.id, options_.boot};
}

SessionLogReader CheckpointStore::ReadLog(const StoredSession& stored) const {
  return SessionLogReader(LocationOf(stored.checkpoint.identity, stored.checkpoint.user), secret_,
                          stored.checkpoint.log, stored.log);
}

std::shared_ptr<SessionLog> CheckpointStore::NewLog(const SessionIdentity& identity,
                                                    const std::string& user, uint64_t last_number,
                                                    std::string last_tag) const {
  return std::make_shared<SessionLog>(
      LocationOf(identity, user), secret_,
      [this, user](int64_t bytes) { return CheckRoom(user, "", bytes, /*goes_on=*/true); },
      last_number, std::move(last_tag));
}

absl::StatusOr<std::unique_ptr<SealedReader>> CheckpointStore::Read(
    const StoredSession& stored) const {
  return SealedReader::Open(stored.path, secret_, kCheckpointVersion);
}

FolderUse CheckpointStore::Look() const {
  FolderUse use = FolderUse::Look(options_.folder);
  files_looked_at_ += use.files();
  return use;
}

int64_t CheckpointStore::BytesOf(const std::string& user) const {
  return Look().OfUser(PrefixOf(user), "");
}

int64_t CheckpointStore::bytes() const { return Look().Total(""); }

void CheckpointStore::BeginSavingAll() {
  FolderUse use = Look();
  absl::MutexLock lock(&mutex_);
  KILN_VALIDATE(use, use.files());
  use_ = std::move(use);
}

absl::Status CheckpointStore::CheckRoom(const std::string& user, const std::string& except,
                                        int64_t bytes, bool goes_on) const {
  {
    absl::MutexLock lock(&mutex_);
    if (use_) return CheckRoomIn(*use_, user, except, bytes, goes_on);
  }
  return CheckRoomIn(Look(), user, except, bytes, goes_on);
}

absl::Status CheckpointStore::CheckRoomIn(const FolderUse& use, const std::string& user,
                                          const std::string& except, int64_t bytes,
                                          bool goes_on) const {
  KILN_CHECK_GE(bytes, 0);
  const int64_t used = use.Total(except);
  if (bytes > options_.limit_bytes - used) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes do not fit: checkpoints of sessions use ", used, " of ",
                     options_.limit_bytes, " bytes of disk; raise state.session_limit"));
  }
  const int64_t his = use.OfUser(PrefixOf(user), except);
  if (goes_on && his + bytes > options_.limit_bytes - used - bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes do not fit: checkpoints of this user's sessions use ", his,
                     " bytes of disk, and less than that would remain free for other users; raise "
                     "state.session_limit"));
  }
  const int64_t limit = options_.user_limit_bytes ? options_.user_limit_bytes(user) : 0;
  if (limit <= 0) return absl::OkStatus();
  if (bytes <= limit - his) return absl::OkStatus();
  return quota::Refusal({user, quota::Resource::kDisk}, bytes, his, limit);
}

absl::StatusOr<std::unique_ptr<SealedWriter>> CheckpointStore::Draft(const Checkpoint& checkpoint,
                                                                     CopyDeadline& deadline) const {
  return Write(checkpoint, /*goes_on=*/true, deadline);
}

absl::StatusOr<std::unique_ptr<SealedWriter>> CheckpointStore::Write(const Checkpoint& checkpoint,
                                                                     bool goes_on,
                                                                     CopyDeadline& deadline) const {
  const std::string description = Encode(checkpoint);
  const int64_t bytes =
      checkpoint.data_bytes() + static_cast<int64_t>(description.size()) + kSealBytes;
  const std::string stem = StemOf(checkpoint.identity, checkpoint.user);
  if (absl::Status status = CheckRoom(checkpoint.user, stem, bytes, goes_on); !status.ok())
    return status;
  auto writer = SealedWriter::Open(absl::StrCat(options_.folder, "/", stem, kSuffix), secret_,
                                   kCheckpointVersion, description, checkpoint.data_bytes());
  if (!writer.ok()) return writer.status();
  absl::Status status = WriteBytes(checkpoint, deadline, **writer);
  if (!status.ok()) return status;
  return writer;
}

absl::Status CheckpointStore::Save(const Checkpoint& checkpoint, CopyDeadline& deadline) {
  auto writer = Write(checkpoint, /*goes_on=*/false, deadline);
  if (!writer.ok()) return writer.status();
  absl::Status status = (*writer)->Commit();
  if (!status.ok()) return status;
  const std::string path = LocationOf(checkpoint.identity, checkpoint.user).stem;
  for (uint64_t old = checkpoint.log; old > 1; --old)
    if (unlink(SegmentPath(path, old - 1).c_str()) != 0) break;
  std::error_code error;
  const auto bytes = fs::file_size(path + kSuffix, error);
  absl::MutexLock lock(&mutex_);
  if (use_ && !error)
    use_->Set(StemOf(checkpoint.identity, checkpoint.user), static_cast<int64_t>(bytes));
  return status;
}

}  // namespace kiln::sessions
