#include "server/buffers/blob_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"

namespace kiln::buffers {
namespace {

constexpr absl::string_view kSha256 = "sha256:";
constexpr size_t kMaxName = 256;
constexpr size_t kKept = 64 << 20;  // of memory for the next uploads
// What an upload takes besides its bytes: its entry, and a message that waits to be filled.
constexpr int64_t kPerBlob = 1 << 10;
constexpr int64_t kMostSpare = 1 << 20;

int64_t Overhead(int64_t announced) { return kPerBlob + std::min(announced, kMostSpare); }

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

BlobStore::BlobStore(int64_t limit_bytes)
    : limit_(limit_bytes), recycler_(std::make_shared<ChunkRecycler>(kKept)) {}

bool BlobStore::IsContentAddressed(absl::string_view name) {
  return absl::StartsWith(name, kSha256);
}

absl::Status BlobStore::CheckName(absl::string_view name) {
  if (IsContentAddressed(name)) {
    const absl::string_view digest = name.substr(kSha256.size());
    if (digest.size() == 64 && IsLowerHex(digest)) return absl::OkStatus();
  } else if (!name.empty() && name.size() <= kMaxName &&
             name.find(':') == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "blob name ", Quoted({name.data(), name.size()}),
                                " is neither \"sha256:\" and 64 lower-case hexadecimal digits "
                                "nor a name of 1 to 256 bytes without a colon")),
                            "BAD_BLOB_NAME");
}

BlobStore::Key BlobStore::KeyOf(SessionNumber session, const std::string& user,
                                const std::string& name) {
  if (IsContentAddressed(name)) return {user, name};
  // No user's name can clash with this: names of the two kinds differ by their colon.
  return {absl::StrCat("#", session), name};
}

std::vector<std::string> BlobStore::Hold(SessionNumber session, const std::string& user,
                                         const std::vector<std::string>& names) {
  std::vector<std::string> found;
  absl::MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    const auto entry = blobs_.find(KeyOf(session, user, name));
    if (entry == blobs_.end()) continue;
    // Whoever asks is about to use it, so it may not be forgotten until that has happened. Uses are
    // numbered from 1: erasing number 0 does nothing.
    entry->second.holders.insert(session);
    used_.erase(std::exchange(entry->second.use, 0));
    found.push_back(name);
  }
  return found;
}

absl::StatusOr<BlobStore::Blob> BlobStore::Find(SessionNumber session, const std::string& user,
                                                const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto entry = blobs_.find(KeyOf(session, user, name));
  if (entry != blobs_.end()) {
    // A client can find out that a content-addressed blob is gone and send it again. A private one
    // is uploaded once and must stay.
    if (IsContentAddressed(name) && entry->second.use == 0) {
      entry->second.use = ++uses_;
      used_.emplace(uses_, entry->first);
    }
    return entry->second.data;
  }
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat("blob ", Quoted(name), " has not been uploaded")),
      "UNKNOWN_BLOB", {{"blob", name}});
}

void BlobStore::DropHolder(std::map<Key, Entry>::iterator entry, SessionNumber session) {
  entry->second.holders.erase(session);
  if (!entry->second.holders.empty()) return;
  Erase(entry);
}

void BlobStore::Delete(SessionNumber session, const std::string& user,
                       const std::vector<std::string>& names) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    const auto entry = blobs_.find(KeyOf(session, user, name));
    if (entry != blobs_.end()) DropHolder(entry, session);
  }
}

std::vector<std::pair<std::string, BlobStore::Blob>> BlobStore::HeldBy(
    SessionNumber session) const {
  std::vector<std::pair<std::string, Blob>> held;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, entry] : blobs_)
    if (entry.holders.count(session) > 0) held.emplace_back(key.second, entry.data);
  return held;
}

void BlobStore::EndSession(SessionNumber session) {
  absl::MutexLock lock(&mutex_);
  for (auto entry = blobs_.begin(); entry != blobs_.end();) {
    // Before DropHolder, which may erase the entry.
    const auto current = entry++;
    if (current->second.holders.count(session) > 0) DropHolder(current, session);
  }
}

int64_t BlobStore::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

absl::StatusOr<std::unique_ptr<BlobStore::Upload>> BlobStore::Begin(SessionNumber session,
                                                                    const std::string& user,
                                                                    const std::string& name,
                                                                    uint64_t size,
                                                                    memory::Account& account) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  if (size > static_cast<uint64_t>(limit_)) {
    absl::MutexLock lock(&mutex_);
    return Refusal(name, size);
  }
  const auto announced = static_cast<int64_t>(size);
  if (absl::Status status =
          account.CheckFitsAlone(memory::Use::kBlobs, announced + Overhead(announced));
      !status.ok())
    return status;
  auto charge = account.Reserve(memory::Use::kBlobs, kPerBlob);
  if (!charge.ok()) return charge.status();
  return std::unique_ptr<Upload>(
      new Upload(*this, session, user, name, announced, /*is_exempt=*/false, *std::move(charge)));
}

absl::StatusOr<std::unique_ptr<BlobStore::Upload>> BlobStore::BeginAgain(SessionNumber session,
                                                                         const std::string& user,
                                                                         const std::string& name,
                                                                         uint64_t size,
                                                                         memory::Account& account) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  return std::unique_ptr<Upload>(new Upload(*this, session, user, name, static_cast<int64_t>(size),
                                            /*is_exempt=*/true, account.Open(memory::Use::kBlobs)));
}

absl::Status BlobStore::Refusal(const std::string& name, uint64_t bytes) const {
  return errors::WithReason(
      absl::ResourceExhaustedError(
          absl::StrCat(bytes, " bytes of blob ", Quoted(name), " do not fit: ", bytes_, " of ",
                       limit_, " bytes for uploads are in use; delete blobs or raise blob_limit")),
      "BLOB_LIMIT",
      {{"blob", name}, {"used", absl::StrCat(bytes_)}, {"limit", absl::StrCat(limit_)}});
}

absl::Status BlobStore::Reserve(const std::string& name, int64_t bytes, bool is_exempt) {
  std::vector<Blob> dropped;  // outlives the lock
  absl::MutexLock lock(&mutex_);
  DropUsed(bytes_ + bytes - limit_, "", &dropped);
  if (!is_exempt && bytes > limit_ - bytes_) return Refusal(name, static_cast<uint64_t>(bytes));
  bytes_ += bytes;
  return absl::OkStatus();
}

void BlobStore::DropUsed(int64_t bytes, const std::string& user, std::vector<Blob>* dropped) {
  for (auto used = used_.begin(); bytes > 0 && used != used_.end();) {
    const Key key = (used++)->second;  // before Erase, which takes it out
    if (!user.empty() && key.first != user) continue;
    const auto entry = blobs_.find(key);
    bytes -= entry->second.data->size();
    // Freeing gigabytes takes a while, so that is left to the caller, who does it without the lock.
    dropped->push_back(entry->second.data);
    Erase(entry);
  }
}

void BlobStore::Erase(std::map<Key, Entry>::iterator entry) {
  used_.erase(entry->second.use);
  bytes_ -= entry->second.data->size();
  blobs_.erase(entry);
}

void BlobStore::Reclaim(int64_t bytes, const std::string& user) {
  std::vector<Blob> dropped;
  absl::MutexLock lock(&mutex_);
  DropUsed(bytes, user, &dropped);
}

void BlobStore::Unreserve(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  bytes_ -= bytes;
}

void BlobStore::Store(const Key& key, SessionNumber session, Blob data) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = blobs_[key];
  // A private name may be uploaded again; of two equal contents one is enough.
  if (entry.data) bytes_ -= entry.data->size();
  entry.data = std::move(data);
  used_.erase(std::exchange(entry.use, 0));
  entry.holders.insert(session);
}

BlobStore::Upload::Upload(BlobStore& store, SessionNumber session, std::string user,
                          std::string name, int64_t size, bool is_exempt, memory::Charge charge)
    : store_(store),
      session_(session),
      user_(std::move(user)),
      name_(std::move(name)),
      size_(size),
      is_exempt_(is_exempt),
      data_(std::make_shared<Chunks>(store.recycler_, std::move(charge))) {
  if (IsContentAddressed(name_)) digest_.emplace();
}

BlobStore::Upload::~Upload() {
  if (!finished_) store_.Unreserve(reserved_);
}

absl::Status BlobStore::Upload::Append(std::string& data) {
  if (data.size() > static_cast<size_t>(size_ - data_->size())) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("blob ", Quoted(name_), " was announced with ",
                                                size_, " bytes, but more came")),
        "BLOB_SIZE", {{"blob", name_}});
  }
  const auto bytes = static_cast<int64_t>(data.size());
  // Without the store's lock: what does not fit has Reclaim called, which takes it.
  absl::Status status = data_->GrowCharge(data_->size() + bytes + Overhead(size_));
  if (status.ok()) status = store_.Reserve(name_, bytes, is_exempt_);
  if (!status.ok()) return status;
  reserved_ += bytes;
  if (digest_) digest_->Update(data);
  data_->Append(data);
  return absl::OkStatus();
}

absl::Status BlobStore::Upload::Finish() {
  if (data_->size() != size_) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("blob ", Quoted(name_), " was announced with ",
                                                size_, " bytes, but ", data_->size(), " came")),
        "BLOB_SIZE", {{"blob", name_}});
  }
  if (digest_) {
    const std::string actual = absl::StrCat(kSha256, digest_->FinishHex());
    if (actual != name_) {
      return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                    "the bytes of blob \"", name_, "\" have the digest ", actual,
                                    "; they were damaged on the way or named wrongly")),
                                "BLOB_DIGEST", {{"blob", name_}});
    }
  }
  // What was reserved for the bytes belongs to the stored entry from here on.
  finished_ = true;
  data_->ShrinkCharge(size_ + kPerBlob);
  store_.Store(KeyOf(session_, user_, name_), session_, std::move(data_));
  return absl::OkStatus();
}

}  // namespace kiln::buffers
