// Uploaded bytes, from which buffers are made.
#ifndef KILN_SERVER_BUFFERS_BLOB_STORE_H_
#define KILN_SERVER_BUFFERS_BLOB_STORE_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/buffers/chunks.h"
#include "server/memory/host_memory.h"

namespace kiln::buffers {

// Content-addressed blobs (blob_name.h) are held once for all sessions of a user, under names that
// state their digest. What a session uploads is its own at first, as it sent it: only this user's
// own client can have named it wrongly. Before anybody is told that a digest is there, Verify
// hashes what is named so or has the sum that stands before it; from then on it is shared, and kept
// while a session holds it. Once every session that has asked for it has used it, it may be
// forgotten when memory is short, and Hold says whether it is there; so may what states a sum
// alone, which is its session's own. A blob of any other name is private to its session.
// Thread-safe.
class BlobStore {
 public:
  // `limit_bytes` bounds all blobs and uploads together, apart from the budget that they are
  // charged to.
  explicit BlobStore(int64_t limit_bytes);

  using Blob = std::shared_ptr<const Chunks>;
  using SessionNumber = int64_t;  // from 1 on

  // Whether Verify would find nothing to do.
  bool AreVerified(const std::string& user, const std::vector<std::string>& names) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Hashes what the user's sessions have uploaded under these names and nobody has verified, each
  // blob once; waits for other threads that do so. Gigabytes take seconds, without the lock. Bytes
  // with another digest stay their session's own and are logged (`blob_digest_wrong`).
  void Verify(const std::string& user, const std::vector<std::string>& names)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Which of `names` are there; those that state a digest only if they are verified. They are held
  // by the session from here on, and wanted until it has used them by an operation with a number
  // above `after_sequence`: what it sent before may be executed only later. A sum alone is there,
  // and not held, if a blob of the user's states it.
  std::vector<std::string> Hold(SessionNumber session, const std::string& user,
                                const std::vector<std::string>& names, uint64_t after_sequence)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // For the operation with this number: what the session itself has uploaded under the name, else
  // what is verified. NOT_FOUND names the blob.
  absl::StatusOr<Blob> Find(SessionNumber session, const std::string& user, const std::string& name,
                            uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // What Find would find, which stays as unused as it was; null if there is nothing.
  Blob Peek(SessionNumber session, const std::string& user, const std::string& name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Delete(SessionNumber session, const std::string& user, const std::vector<std::string>& names)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What the session holds, but for content-addressed ones that it has used, by their names; each
  // name once, as Find would find it.
  std::vector<std::pair<std::string, Blob>> HeldBy(SessionNumber session) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndSession(SessionNumber session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets at least this many bytes of what may be forgotten, or all of it; with a name, only what
  // is that user's.
  void Reclaim(int64_t bytes, const std::string& user = "") ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the memory that waits for the next uploads, gives back to the system what is beyond
  // `most_bytes`; or what nobody has needed since the last call. Half as much as the limit may
  // wait.
  void DropIdleMemory(int64_t most_bytes) {
    recycler_->DropBeyond(static_cast<size_t>(std::max<int64_t>(most_bytes, 0)));
  }
  void DropUnusedMemory() { recycler_->DropUnused(); }
  // That wait for the next uploads.
  int64_t idle_bytes() const { return static_cast<int64_t>(recycler_->bytes()); }

  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // One upload; used by one thread at a time. Without Finish nothing is stored.
  class Upload {
   public:
    ~Upload();
    // Copies these bytes. INVALID_ARGUMENT if more come than were announced; RESOURCE_EXHAUSTED if
    // there is no room for them any more. The errors name the blob.
    absl::Status Append(absl::Span<const absl::string_view> data);
    // All that was announced has come.
    bool is_complete() const { return come_ == size_; }
    // Once. INVALID_ARGUMENT if bytes are missing.
    absl::Status Finish();

   private:
    friend class BlobStore;
    Upload(BlobStore& store, SessionNumber session, std::string user, std::string name,
           int64_t size, bool is_exempt, memory::Charge charge);
    static constexpr int64_t kEntry = 1 << 10;  // bytes that an entry of the store takes

    BlobStore& store_;
    const SessionNumber session_;
    const std::string user_;
    const std::string name_;
    const int64_t size_;
    const bool is_exempt_;
    int64_t come_ = 0;  // and reserved in the store
    std::shared_ptr<Chunks> data_;
    bool finished_ = false;
  };
  // Memory is charged to `account` as bytes come (see Chunks), for as long as anybody has them:
  // what is only announced takes nothing from others. INVALID_ARGUMENT: the name.
  // RESOURCE_EXHAUSTED: the size would not fit if nothing else were there.
  absl::StatusOr<std::unique_ptr<Upload>> Begin(SessionNumber session, const std::string& user,
                                                const std::string& name, uint64_t size,
                                                memory::Account& account)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For what an earlier daemon had; `account` is exempt from its own limit. The store's holds only
  // for those that state a digest, of which sessions that shared one have one each now.
  // INVALID_ARGUMENT: the name.
  absl::StatusOr<std::unique_ptr<Upload>> BeginAgain(SessionNumber session, const std::string& user,
                                                     const std::string& name, uint64_t size,
                                                     memory::Account& account);

 private:
  struct Key {
    std::string user;
    std::string name;
    SessionNumber session;  // whose own it is; kShared: verified
    auto operator<=>(const Key&) const = default;
  };
  static constexpr SessionNumber kShared = 0;
  struct Holder {
    bool wants = true;  // has not used it since it asked
    uint64_t after_sequence = 0;
  };
  struct Entry {
    Blob data;
    std::map<SessionNumber, Holder> holders;
    int64_t use = 0;          // its number in used_; 0: it is not there
    std::string digest = {};  // hexadecimal; empty: nobody has hashed it
    // As many owners as entries have this data (see ShareAs).
    std::shared_ptr<const char> names = std::make_shared<const char>();
  };
  using Entries = std::map<Key, Entry>;

  Entries::iterator FindFor(SessionNumber session, const std::string& user, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a session of the user's has uploaded that may have the name's digest, and is not shared
  // under this name; blobs_.end() if there is none.
  Entries::const_iterator FindUnverified(const std::string& user, const std::string& name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // False if there was none.
  bool VerifyOne(const std::string& user, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // The session's own has the digest that `name` states.
  void ShareAs(const std::string& name, Entries::iterator own)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasSum(const std::string& user, const std::string& name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Store(const Key& key, Blob data) ABSL_LOCKS_EXCLUDED(mutex_);
  // Room for so many bytes more of the blob; RESOURCE_EXHAUSTED.
  absl::Status Reserve(const std::string& name, int64_t bytes, bool is_exempt)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Refusal(const std::string& name, uint64_t bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Unreserve(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void KeepFromDropping(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetDropIfUnwanted(Entries::iterator found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // That are there no more without this entry.
  static int64_t BytesOnlyOf(const Entry& entry) {
    return entry.names.use_count() == 1 ? entry.data->size() : 0;
  }
  // Moves the data of at least `bytes` of used blobs to `dropped`, or of all (of the user, if one
  // is named); the oldest first.
  void DropUsed(int64_t bytes, const std::string& user, std::vector<Blob>* dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the entry to held_ for each of its holders, or takes it out.
  void NoteHolders(const Key& key, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetHolders(const Key& key, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetHolder(const Key& key, SessionNumber session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropHolder(Entries::iterator entry, SessionNumber session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t limit_;
  const std::shared_ptr<ChunkRecycler> recycler_;
  mutable absl::Mutex mutex_;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // that have come
  Entries blobs_ ABSL_GUARDED_BY(mutex_);
  // By holder, so that a session's end takes no look at all blobs.
  std::map<SessionNumber, std::set<Key>> held_ ABSL_GUARDED_BY(mutex_);
  // Users and names of which a thread verifies a blob.
  std::set<std::pair<std::string, std::string>> verifying_ ABSL_GUARDED_BY(mutex_);
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  // Content-addressed ones that nobody wants since a buffer was made from them, the oldest first.
  std::map<int64_t, Key> used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_BLOB_STORE_H_
