#include "server/buffers/blob_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "proto/digest/sha256.h"
#include "server/buffers/blob_name.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::buffers {
namespace {

// The most blobs of one name that one Verify hashes.
constexpr int kBlobsOfNameMax = 16;
// The most blobs with one sum that one Verify looks at.
constexpr int kBlobsOfSumMax = 64;

std::string HexDigest(const Chunks& data) {
  Sha256 digest;
  for (const absl::string_view piece : data.pieces()) digest.Update({piece.data(), piece.size()});
  return digest.FinishHex();
}

}  // namespace

BlobStore::BlobStore(int64_t limit_bytes)
    : limit_(limit_bytes),
      recycler_(std::make_shared<ChunkRecycler>(static_cast<size_t>(limit_bytes / 2))) {}

BlobStore::~BlobStore() {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_EQ(uploading_bytes_, 0) << "an upload outlives its store";
  KILN_CHECK(verifying_.empty());
}

void BlobStore::Validate() const {
  size_t holders = 0, used = 0, held = 0;
  for (const auto& [key, entry] : blobs_) {
    ValidateEntry(key, entry);
    holders += entry.holders.size();
    used += entry.use != 0 ? 1 : 0;
  }
  for (const auto& [session, keys] : held_) {
    KILN_CHECK(!keys.empty()) << "session " << session;
    held += keys.size();
  }
  // Each holder of an entry is in held_, and each entry with a use is in used_, so these are all.
  KILN_CHECK_EQ(held, holders);
  KILN_CHECK_EQ(used, used_.size());
  for (const auto& [user, name] : verifying_)
    KILN_CHECK(!blobs_.contains({user, name, kShared})) << name;
  ValidateBytes();
}

void BlobStore::ValidateEntry(const Key& key, const Entry& entry) const {
  KILN_CHECK_NE(entry.data, nullptr) << key.name;
  KILN_CHECK(!entry.holders.empty()) << key.name;
  bool is_wanted = false;
  for (const auto& [session, holder] : entry.holders) {
    is_wanted = is_wanted || holder.wants;
    const auto keys = held_.find(session);
    KILN_CHECK(keys != held_.end() && keys->second.contains(key)) << key.name << " of " << session;
  }
  if (key.session == kShared) {
    KILN_CHECK_EQ(entry.digest, DigestIn(key.name));
  } else {
    KILN_CHECK_EQ(entry.holders.size(), 1) << key.name;
    KILN_CHECK(entry.holders.contains(key.session)) << key.name;
  }
  // Entries that may be dropped are in used_, and no others.
  const bool may_be_dropped = IsContentAddressed(key.name) && !is_wanted;
  KILN_CHECK_EQ(entry.use != 0, may_be_dropped) << key.name;
  if (entry.use == 0) return;
  const auto used = used_.find(entry.use);
  KILN_CHECK(used != used_.end() && used->second == key) << key.name;
  KILN_CHECK_LE(entry.use, uses_) << key.name;
}

void BlobStore::ValidateBytes() const {
  struct Data {
    const Chunks* chunks = nullptr;
    int64_t entries = 0;
  };
  std::map<const char*, Data> all;  // by Entry::names
  int64_t bytes = uploading_bytes_;
  for (const auto& [key, entry] : blobs_) {
    Data& data = all[entry.names.get()];
    if (data.entries++ == 0) bytes += entry.data->size();
    KILN_CHECK(data.chunks == nullptr || data.chunks == entry.data.get()) << key.name;
    data.chunks = entry.data.get();
  }
  for (const auto& [key, entry] : blobs_)
    KILN_CHECK_EQ(entry.names.use_count(), all[entry.names.get()].entries) << key.name;
  KILN_CHECK_GE(uploading_bytes_, 0);
  KILN_CHECK_EQ(bytes, bytes_);
}

BlobStore::Entries::iterator BlobStore::FindFor(SessionNumber session, const std::string& user,
                                                const std::string& name) {
  const auto own = blobs_.find({user, name, session});
  return own != blobs_.end() ? own : blobs_.find({user, name, kShared});
}

BlobStore::Entries::const_iterator BlobStore::FindUnverified(const std::string& user,
                                                             const std::string& name) const {
  const auto end = blobs_.end();
  const absl::string_view digest = DigestIn(name);
  if (digest.empty() || blobs_.contains({user, name, kShared})) return end;
  const auto is_candidate = [&](const auto& entry) {
    return entry.first.session != kShared &&
           (entry.second.digest.empty() || entry.second.digest == digest);
  };
  // The exact name first, since its sum may have more blobs than the loop below looks at.
  for (auto entry = blobs_.lower_bound({user, name, kShared});
       entry != end && entry->first.user == user && entry->first.name == name; ++entry)
    if (is_candidate(*entry)) return entry;
  const std::string sum(SumIn(name));
  if (sum.empty()) return end;
  auto entry = blobs_.lower_bound({user, sum, kShared});
  for (int i = 0; i < kBlobsOfSumMax && entry != end && entry->first.user == user &&
                  absl::StartsWith(entry->first.name, sum);
       ++i, ++entry)
    if (is_candidate(*entry)) return entry;
  return end;
}

bool BlobStore::AreVerified(const std::string& user, const std::vector<std::string>& names) const {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    // Locks for each name, since names may be many.
    absl::MutexLock lock(&mutex_);
    return FindUnverified(user, name) == blobs_.end();
  });
}

void BlobStore::Verify(const std::string& user, const std::vector<std::string>& names) {
  // Several blobs may have a name, only one of them right, and more may arrive at any time.
  for (const std::string& name : names) {
    for (int i = 0; i < kBlobsOfNameMax && VerifyOne(user, name); ++i) {
    }
  }
}

bool BlobStore::VerifyOne(const std::string& user, const std::string& name) {
  const auto is_free = [&] {
    mutex_.AssertReaderHeld();
    return !verifying_.contains({user, name});
  };
  Key key;
  Blob data;
  std::string digest;
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_free));
    const auto entry = FindUnverified(user, name);
    if (entry == blobs_.end()) return false;
    key = entry->first;
    data = entry->second.data;
    digest = entry->second.digest;
    verifying_.emplace(user, name);
  }
  if (digest.empty()) digest = HexDigest(*data);
  absl::MutexLock lock(&mutex_);
  const size_t erased = verifying_.erase({user, name});
  KILN_CHECK_EQ(erased, 1) << name;
  const auto entry = blobs_.find(key);
  // The blob may have been released or uploaded again meanwhile.
  if (entry == blobs_.end() || entry->second.data != data) return true;
  entry->second.digest = digest;
  if (digest == DigestIn(name)) {
    ShareAs(name, entry);
  } else if (key.name == name) {
    log::Warning("blob_digest_wrong",
                 {{"session", absl::StrCat("s", key.session)}, {"user", user}, {"blob", name}});
  }
  KILN_VALIDATE(*this, entries());
  return true;
}

void BlobStore::ShareAs(const std::string& name, Entries::iterator own) {
  const Key shared{own->first.user, name, kShared};
  KILN_CHECK_NE(own->first.session, kShared) << name;
  KILN_CHECK_EQ(own->second.digest, DigestIn(name));
  KILN_CHECK(!blobs_.contains(shared)) << name;
  if (own->first.name == name || own->second.use != 0) {
    if (own->second.use != 0) used_[own->second.use] = shared;
    ForgetHolders(own->first, own->second);
    auto node = blobs_.extract(own);
    node.key() = shared;
    const auto moved = blobs_.insert(std::move(node)).position;
    NoteHolders(shared, moved->second);
    return;
  }
  // Its session may have sent an operation that uses it by its original name, so until that is done
  // the bytes have both names.
  const auto entry = blobs_.emplace(shared, own->second).first;
  NoteHolders(shared, entry->second);
  for (auto& [session, holder] : entry->second.holders) holder.wants = false;
  LetDropIfUnwanted(entry);
}

bool BlobStore::HasSum(const std::string& user, const std::string& name) const {
  const std::string sum = name + ":";
  const auto first = blobs_.lower_bound({user, sum, kShared});
  return first != blobs_.end() && first->first.user == user &&
         absl::StartsWith(first->first.name, sum);
}

std::vector<std::string> BlobStore::Hold(SessionNumber session, const std::string& user,
                                         const std::vector<std::string>& names,
                                         uint64_t after_sequence) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    // Locks for each name, since names may be many.
    absl::MutexLock lock(&mutex_);
    if (IsSumAlone(name)) {
      if (HasSum(user, name)) found.push_back(name);
      continue;
    }
    const auto own = blobs_.find({user, name, session});
    auto entry = own;
    if (!DigestIn(name).empty()) {
      entry = blobs_.find({user, name, kShared});
      // One of two equal contents is enough.
      if (entry != blobs_.end() && own != blobs_.end()) Erase(own);
    }
    if (entry == blobs_.end()) continue;
    Holder& holder = entry->second.holders[session];
    held_[session].insert(entry->first);
    holder = {true, std::max(holder.after_sequence, after_sequence)};
    KeepFromDropping(entry->second);
    found.push_back(name);
    KILN_VALIDATE(*this, entries());
  }
  return found;
}

void BlobStore::KeepFromDropping(Entry& entry) {
  // Uses are numbered from 1, so erasing number 0 does nothing.
  used_.erase(std::exchange(entry.use, 0));
}

void BlobStore::LetDropIfUnwanted(Entries::iterator found) {
  auto& [key, entry] = *found;
  const bool is_wanted = std::any_of(entry.holders.begin(), entry.holders.end(),
                                     [](const auto& holder) { return holder.second.wants; });
  // A client can find out that a content-addressed blob is gone and send it again. A private blob
  // is uploaded only once and must be kept.
  if (!IsContentAddressed(key.name) || is_wanted || entry.use != 0) return;
  entry.use = ++uses_;
  const bool is_new = used_.emplace(uses_, key).second;
  KILN_CHECK(is_new) << key.name;
}

absl::StatusOr<BlobStore::Blob> BlobStore::Find(SessionNumber session, const std::string& user,
                                                const std::string& name, uint64_t sequence) {
  absl::MutexLock lock(&mutex_);
  const auto found = FindFor(session, user, name);
  if (found != blobs_.end()) {
    Entry& entry = found->second;
    if (const auto holder = entry.holders.find(session);
        holder != entry.holders.end() && sequence > holder->second.after_sequence)
      holder->second.wants = false;
    LetDropIfUnwanted(found);
    KILN_VALIDATE(*this, entries());
    return entry.data;
  }
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat("blob ", Quoted(name), " has not been uploaded")),
      "UNKNOWN_BLOB", {{"blob", name}});
}

BlobStore::Blob BlobStore::Peek(SessionNumber session, const std::string& user,
                                const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = FindFor(session, user, name);
  return found == blobs_.end() ? nullptr : found->second.data;
}

void BlobStore::DropHolder(Entries::iterator entry, SessionNumber session) {
  entry->second.holders.erase(session);
  ForgetHolder(entry->first, session);
  if (entry->second.holders.empty()) return Erase(entry);
  // The other holders may all have used it.
  LetDropIfUnwanted(entry);
}

void BlobStore::Delete(SessionNumber session, const std::string& user,
                       const std::vector<std::string>& names) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    for (const SessionNumber owner : {session, kShared}) {
      const auto entry = blobs_.find({user, name, owner});
      if (entry != blobs_.end()) DropHolder(entry, session);
    }
  }
  KILN_VALIDATE(*this, entries());
}

std::vector<std::pair<std::string, BlobStore::Blob>> BlobStore::HeldBy(
    SessionNumber session) const {
  std::vector<std::pair<std::string, Blob>> held;
  absl::MutexLock lock(&mutex_);
  const auto keys = held_.find(session);
  if (keys == held_.end()) return held;
  for (const Key& key : keys->second) {
    const Entry& entry = blobs_.at(key);
    const auto holder = entry.holders.find(session);
    KILN_CHECK(holder != entry.holders.end()) << key.name;
    // The session can ask again for what it has used. If it were kept, it would be restored once
    // for each session that holds it.
    if (IsContentAddressed(key.name) && !holder->second.wants) continue;
    // A session's own blob comes after the shared one of the same name, and replaces it.
    if (!held.empty() && held.back().first == key.name) held.pop_back();
    held.emplace_back(key.name, entry.data);
  }
  return held;
}

void BlobStore::CloseSession(SessionNumber session) {
  absl::MutexLock lock(&mutex_);
  const auto keys = held_.extract(session);
  if (keys.empty()) return;
  for (const Key& key : keys.mapped()) {
    const auto entry = blobs_.find(key);
    KILN_CHECK(entry != blobs_.end()) << key.name;
    DropHolder(entry, session);
  }
  KILN_VALIDATE(*this, entries());
}

void BlobStore::NoteHolders(const Key& key, const Entry& entry) {
  for (const auto& [session, holder] : entry.holders) held_[session].insert(key);
}

void BlobStore::ForgetHolders(const Key& key, const Entry& entry) {
  for (const auto& [session, holder] : entry.holders) ForgetHolder(key, session);
}

void BlobStore::ForgetHolder(const Key& key, SessionNumber session) {
  const auto keys = held_.find(session);
  if (keys == held_.end()) return;
  keys->second.erase(key);
  if (keys->second.empty()) held_.erase(keys);
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
  if (absl::Status status = CheckBlobName(name); !status.ok()) return status;
  if (size > static_cast<uint64_t>(limit_)) {
    absl::MutexLock lock(&mutex_);
    return Refusal(name, size);
  }
  const auto announced = static_cast<int64_t>(size);
  if (absl::Status status = account.CheckFitsAlone(memory::Use::kBlobs, announced + Upload::kEntry);
      !status.ok())
    return status;
  auto charge = account.Reserve(memory::Use::kBlobs, Upload::kEntry);
  if (!charge.ok()) return charge.status();
  return std::unique_ptr<Upload>(
      new Upload(*this, session, user, name, announced, /*is_exempt=*/false, *std::move(charge)));
}

absl::StatusOr<std::unique_ptr<BlobStore::Upload>> BlobStore::BeginAgain(SessionNumber session,
                                                                         const std::string& user,
                                                                         const std::string& name,
                                                                         uint64_t size,
                                                                         memory::Account& account) {
  if (absl::Status status = CheckBlobName(name); !status.ok()) return status;
  return std::unique_ptr<Upload>(new Upload(*this, session, user, name, static_cast<int64_t>(size),
                                            /*is_exempt=*/DigestIn(name).empty(),
                                            account.Open(memory::Use::kBlobs)));
}

absl::Status BlobStore::Refusal(const std::string& name, uint64_t bytes) const {
  const std::string why =
      bytes > static_cast<uint64_t>(limit_)
          ? absl::StrCat("blob ", Quoted(name), " of ", bytes,
                         " bytes is larger than the limit for all blobs (", limit_,
                         " bytes); send smaller blobs, or raise blob_limit")
          : absl::StrCat(bytes, " bytes of blob ", Quoted(name), " do not fit: ", bytes_, " of ",
                         limit_, " bytes for uploads are in use; delete blobs or raise blob_limit");
  return errors::WithReason(
      absl::ResourceExhaustedError(why), "BLOB_LIMIT",
      {{"blob", name}, {"used", absl::StrCat(bytes_)}, {"limit", absl::StrCat(limit_)}});
}

absl::Status BlobStore::Reserve(const std::string& name, int64_t bytes, bool is_exempt) {
  std::vector<Blob> dropped;  // outlives the lock
  absl::MutexLock lock(&mutex_);
  DropUsed(bytes_ + bytes - limit_, "", &dropped);
  if (!is_exempt && bytes > limit_ - bytes_) return Refusal(name, static_cast<uint64_t>(bytes));
  bytes_ += bytes;
  uploading_bytes_ += bytes;
  KILN_VALIDATE(*this, entries());
  return absl::OkStatus();
}

void BlobStore::DropUsed(int64_t bytes, const std::string& user, std::vector<Blob>* dropped) {
  for (auto used = used_.begin(); bytes > 0 && used != used_.end();) {
    const Key key = (used++)->second;  // before Erase, which invalidates it
    if (!user.empty() && key.user != user) continue;
    const auto entry = blobs_.find(key);
    KILN_CHECK(entry != blobs_.end()) << key.name;
    bytes -= BytesOnlyOf(entry->second);
    // Freeing gigabytes takes long, so the caller does it without the lock.
    dropped->push_back(entry->second.data);
    Erase(entry);
  }
}

void BlobStore::Erase(Entries::iterator entry) {
  used_.erase(entry->second.use);
  bytes_ -= BytesOnlyOf(entry->second);
  KILN_CHECK_GE(bytes_, uploading_bytes_);
  ForgetHolders(entry->first, entry->second);
  blobs_.erase(entry);
}

void BlobStore::Reclaim(int64_t bytes, const std::string& user) {
  std::vector<Blob> dropped;
  {
    absl::MutexLock lock(&mutex_);
    DropUsed(bytes, user, &dropped);
    KILN_VALIDATE(*this, entries());
  }
  dropped.clear();
  if (user.empty()) DropIdleMemory(0);
}

void BlobStore::Unreserve(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_GE(uploading_bytes_, bytes);
  bytes_ -= bytes;
  uploading_bytes_ -= bytes;
  KILN_VALIDATE(*this, entries());
}

void BlobStore::Store(const Key& key, Blob data) {
  KILN_CHECK_NE(data, nullptr) << key.name;
  KILN_CHECK_GT(key.session, kShared) << key.name;
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_GE(uploading_bytes_, data->size()) << key.name;
  uploading_bytes_ -= data->size();
  Entry& entry = blobs_[key];
  // A name may be uploaded again.
  if (entry.data) bytes_ -= BytesOnlyOf(entry);
  KeepFromDropping(entry);
  ForgetHolders(key, entry);
  entry = {.data = std::move(data), .holders = {{key.session, {}}}};
  NoteHolders(key, entry);
  KILN_VALIDATE(*this, entries());
}

}  // namespace kiln::buffers
