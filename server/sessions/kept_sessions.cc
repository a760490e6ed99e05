#include "server/sessions/kept_sessions.h"

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

std::string AttemptsPath(const KeptSessions::Kept& kept) {
  return absl::StrCat(absl::StripSuffix(kept.path, kSuffix), kAttempts);
}

// True if a file does not have its session's own name. A copy must not be loaded: it would take the
// number and the name of the original, and end it.
bool IsCopy(const fs::path& path, const SessionImage& image) {
  const std::string own = absl::StrCat(StemOf(image.identity, image.user), kSuffix);
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

absl::StatusOr<std::unique_ptr<KeptSessions>> KeptSessions::Open(Options options) {
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
    // Left by a daemon that was killed.
    if (entry.path().extension() == ".draft") drafts.push_back(entry.path());
    if (entry.path().extension() == kAttempts &&
        !fs::exists(fs::path(path).replace_extension(kSuffix), error))
      drafts.push_back(entry.path());
    if (entry.path().extension() != kSuffix) continue;
    auto reader = SealedReader::Open(path, secret_, kImageVersion);
    absl::Status status = reader.status();
    if (status.ok()) {
      auto image = Decode((*reader)->description(), (*reader)->version());
      status = image.status();
      if (status.ok() && image->data_bytes() != (*reader)->data_bytes())
        status = absl::DataLossError(
            absl::StrCat(path, " has fewer or more bytes than its description says"));
      if (status.ok() && IsCopy(entry.path(), *image)) continue;
      if (status.ok()) all.push_back({path, *std::move(image)});
    }
    if (status.ok()) continue;
    if (absl::IsDataLoss(status)) drafts.push_back(entry.path());
    LogRefused(path, status, absl::IsDataLoss(status) ? "is removed" : "is left unchanged");
  }
  for (const fs::path& draft : drafts) fs::remove(draft, error);
  AddSegments(&all);
  return all;
}

void KeptSessions::AddSegments(std::vector<Kept>* all) const {
  std::map<std::string, Kept*> by_stem;
  for (Kept& kept : *all) by_stem[std::string(absl::StripSuffix(kept.path, kSuffix))] = &kept;
  std::map<std::pair<std::string, uint64_t>, std::string> segments;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    const std::string path = entry.path();
    if (auto segment = SegmentOf(path)) segments[{segment->stem, segment->number}] = path;
  }
  for (const auto& [segment, path] : segments) {
    const auto& [stem, number] = segment;
    const auto kept = by_stem.find(stem);
    if (kept != by_stem.end() && kept->second->image.journal != 0 &&
        number >= kept->second->image.journal) {
      kept->second->journal.push_back(path);
    } else if (kept != by_stem.end() || !fs::exists(absl::StrCat(stem, kSuffix))) {
      // Out of date: a newer image exists, or none does.
      fs::remove(path, error);
    }
  }
  for (Kept& kept : *all) {
    if (kept.image.detached) kept.name = kept.image.detached->name;
    if (kept.journal.empty()) continue;
    const std::string name = JournalReader::NameIn(kept.journal.back(), secret_);
    if (!name.empty()) kept.name = name;
  }
}

absl::Status KeptSessions::Remove(const Kept& kept) {
  // The image first: segments without an image are ignored.
  const absl::Status status = RemoveForGood(kept.path);
  for (const std::string& segment : kept.journal) unlink(segment.c_str());
  ForgetAttempts(kept);
  return status;
}

int KeptSessions::CountAttempt(const Kept& kept) {
  const std::string path = AttemptsPath(kept);
  // One byte per attempt. If it cannot be written, attempts are not counted.
  std::ofstream(path, std::ios::app) << '.';
  std::error_code error;
  const auto attempts = fs::file_size(path, error);
  return error ? 1 : static_cast<int>(attempts);
}

void KeptSessions::ForgetAttempts(const Kept& kept) { unlink(AttemptsPath(kept).c_str()); }

JournalPlace KeptSessions::PlaceOf(const SessionIdentity& identity, const std::string& user) const {
  return {absl::StrCat(options_.folder, "/", StemOf(identity, user)), identity.id, options_.boot};
}

JournalReader KeptSessions::ReadJournal(const Kept& kept) const {
  return JournalReader(PlaceOf(kept.image.identity, kept.image.user), secret_, kept.image.journal,
                       kept.journal);
}

std::shared_ptr<Journal> KeptSessions::NewJournal(const SessionIdentity& identity,
                                                  const std::string& user, uint64_t last_number,
                                                  std::string last_tag) const {
  return std::make_shared<Journal>(
      PlaceOf(identity, user), secret_,
      [this, user](int64_t bytes) { return CheckRoom(user, "", bytes, /*goes_on=*/true); },
      last_number, std::move(last_tag));
}

absl::StatusOr<std::unique_ptr<SealedReader>> KeptSessions::Read(const Kept& kept) const {
  return SealedReader::Open(kept.path, secret_, kImageVersion);
}

FolderUse KeptSessions::Look() const {
  FolderUse use = FolderUse::Look(options_.folder);
  files_looked_at_ += use.files();
  return use;
}

int64_t KeptSessions::BytesOf(const std::string& user) const {
  return Look().OfUser(PrefixOf(user), "");
}

void KeptSessions::BeginSavingAll() {
  FolderUse use = Look();
  absl::MutexLock lock(&mutex_);
  use_ = std::move(use);
}

absl::Status KeptSessions::CheckRoom(const std::string& user, const std::string& except,
                                     int64_t bytes, bool goes_on) const {
  {
    absl::MutexLock lock(&mutex_);
    if (use_) return CheckRoomIn(*use_, user, except, bytes, goes_on);
  }
  return CheckRoomIn(Look(), user, except, bytes, goes_on);
}

absl::Status KeptSessions::CheckRoomIn(const FolderUse& use, const std::string& user,
                                       const std::string& except, int64_t bytes,
                                       bool goes_on) const {
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

absl::StatusOr<std::unique_ptr<SealedWriter>> KeptSessions::Draft(const SessionImage& image,
                                                                  Patience& patience) const {
  return Write(image, /*goes_on=*/true, patience);
}

absl::StatusOr<std::unique_ptr<SealedWriter>> KeptSessions::Write(const SessionImage& image,
                                                                  bool goes_on,
                                                                  Patience& patience) const {
  const std::string description = Encode(image);
  const int64_t bytes = image.data_bytes() + static_cast<int64_t>(description.size()) + kSealBytes;
  const std::string stem = StemOf(image.identity, image.user);
  if (absl::Status status = CheckRoom(image.user, stem, bytes, goes_on); !status.ok())
    return status;
  auto writer = SealedWriter::Open(absl::StrCat(options_.folder, "/", stem, kSuffix), secret_,
                                   kImageVersion, description, image.data_bytes());
  if (!writer.ok()) return writer.status();
  absl::Status status = WriteBytes(image, patience, **writer);
  if (!status.ok()) return status;
  return writer;
}

absl::Status KeptSessions::Save(const SessionImage& image, Patience& patience) {
  auto writer = Write(image, /*goes_on=*/false, patience);
  if (!writer.ok()) return writer.status();
  absl::Status status = (*writer)->Commit();
  if (!status.ok()) return status;
  const std::string path = PlaceOf(image.identity, image.user).stem;
  for (uint64_t old = image.journal; old > 1; --old)
    if (unlink(SegmentPath(path, old - 1).c_str()) != 0) break;
  std::error_code error;
  const auto bytes = fs::file_size(path + kSuffix, error);
  absl::MutexLock lock(&mutex_);
  if (use_ && !error) use_->Set(StemOf(image.identity, image.user), static_cast<int64_t>(bytes));
  return status;
}

}  // namespace kiln::sessions
