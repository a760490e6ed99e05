// Storage for uploaded bytes, from which buffers are made.
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

// Content-addressed blobs (blob_name.h) are stored once for all sessions of a user, under names
// that contain their digest. An upload at first belongs to its session only, under the name it was
// sent with, since only this user's own client can have misnamed it. Before any client is told that
// a digest exists, Verify hashes the uploads with that digest in their name, or with the sum before
// it. Matching bytes are then shared, and kept while a session holds them. Once every session that
// asked for a shared blob has used it, it may be dropped when memory is short; Hold says whether it
// still exists. The same applies to a blob whose name has only a sum, which belongs to its session.
// A blob with any other name is private to its session. Thread-safe.
class BlobStore {
 public:
  // `limit_bytes` bounds all blobs and uploads together, in addition to the memory budget that they
  // are charged to.
  explicit BlobStore(int64_t limit_bytes);
  // Requires: all uploads are destroyed.
  ~BlobStore();

  using Blob = std::shared_ptr<const Chunks>;
  using SessionNumber = int64_t;  // from 1 on

  // Whether Verify would have nothing to do.
  bool AreVerified(const std::string& user, const std::vector<std::string>& names) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Hashes the unverified uploads of the user's sessions under these names, each blob once; waits
  // for other threads that do so. Hashing gigabytes takes seconds, without the lock. Bytes with
  // another digest remain their session's own and are logged (`blob_digest_wrong`).
  void Verify(const std::string& user, const std::vector<std::string>& names)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns those of `names` that exist; names with a digest only if they are verified. The session
  // holds them from now on, and wants them until it has used them in an operation with a number
  // above `after_sequence`, since earlier operations may be executed later. A name that is only a
  // sum exists, but is not held, if a blob of the user has that sum.
  std::vector<std::string> Hold(SessionNumber session, const std::string& user,
                                const std::vector<std::string>& names, uint64_t after_sequence)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the blob for the operation with this number: the session's own upload under the name,
  // else the verified blob. NOT_FOUND names the blob.
  absl::StatusOr<Blob> Find(SessionNumber session, const std::string& user, const std::string& name,
                            uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns what Find would return, without counting as a use; null if there is nothing.
  Blob Peek(SessionNumber session, const std::string& user, const std::string& name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Delete(SessionNumber session, const std::string& user, const std::vector<std::string>& names)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the blobs that the session holds, except content-addressed ones that it has used; each
  // name once, as Find would find it.
  std::vector<std::pair<std::string, Blob>> HeldBy(SessionNumber session) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseSession(SessionNumber session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops at least this many bytes of what may be dropped, or all of it; with a `user`, only that
  // user's.
  void Reclaim(int64_t bytes, const std::string& user = "") ABSL_LOCKS_EXCLUDED(mutex_);

  // DropIdleMemory returns memory cached for the next uploads to the system, down to `bytes_max`;
  // DropUnusedMemory returns what was not needed since its last call. At most half of the limit is
  // cached.
  void DropIdleMemory(int64_t bytes_max) {
    recycler_->DropBeyond(static_cast<size_t>(std::max<int64_t>(bytes_max, 0)));
  }
  void DropUnusedMemory() { recycler_->DropUnused(); }
  // Bytes cached for the next uploads.
  int64_t idle_bytes() const { return static_cast<int64_t>(recycler_->bytes()); }

  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // One upload; used by one thread at a time. Nothing is stored without Finish.
  class Upload {
   public:
    ~Upload();
    // Copies these bytes. INVALID_ARGUMENT if they exceed the announced size; RESOURCE_EXHAUSTED if
    // there is no memory left for them. Errors name the blob.
    absl::Status Append(absl::Span<const absl::string_view> data);
    // Whether all announced bytes have arrived.
    bool is_complete() const { return come_ == size_; }
    // INVALID_ARGUMENT if bytes are missing. Requires: it has not returned OK before.
    absl::Status Finish();

   private:
    friend class BlobStore;
    Upload(BlobStore& store, SessionNumber session, std::string user, std::string name,
           int64_t size, bool is_exempt, memory::Charge charge);
    static constexpr int64_t kEntry = 1 << 10;  // bytes charged for an entry of the store

    BlobStore& store_;
    const SessionNumber session_;
    const std::string user_;
    const std::string name_;
    const int64_t size_;
    const bool is_exempt_;
    int64_t come_ = 0;  // arrived, and reserved in the store
    std::shared_ptr<Chunks> data_;
    bool finished_ = false;
  };
  // Charges memory to `account` as bytes arrive (see Chunks), during the lifetime of the data; an
  // announced size takes nothing from other users. INVALID_ARGUMENT: the name. RESOURCE_EXHAUSTED:
  // the size would not fit even into an empty store.
  absl::StatusOr<std::unique_ptr<Upload>> Begin(SessionNumber session, const std::string& user,
                                                const std::string& name, uint64_t size,
                                                memory::Account& account)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For blobs from an earlier daemon; `account` is exempt from its own limit. The store's limit
  // applies only to names with a digest, since sessions that shared such a blob now restore one
  // each. INVALID_ARGUMENT: the name.
  absl::StatusOr<std::unique_ptr<Upload>> BeginAgain(SessionNumber session, const std::string& user,
                                                     const std::string& name, uint64_t size,
                                                     memory::Account& account);

 private:
  struct Key {
    std::string user;
    std::string name;
    SessionNumber session;  // the owner; kShared: verified
    auto operator<=>(const Key&) const = default;
  };
  static constexpr SessionNumber kShared = 0;
  struct Holder {
    bool wants = true;  // has not used it since it last asked for it
    uint64_t after_sequence = 0;
  };
  struct Entry {
    Blob data;
    std::map<SessionNumber, Holder> holders;
    int64_t use = 0;          // its number in used_; 0: not in used_
    std::string digest = {};  // hexadecimal; empty: not hashed yet
    // Its use count is the number of entries with this data (see ShareAs).
    std::shared_ptr<const char> names = std::make_shared<const char>();
  };
  using Entries = std::map<Key, Entry>;

  Entries::iterator FindFor(SessionNumber session, const std::string& user, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns an upload of one of the user's sessions that may have the name's digest and is not
  // shared under this name; blobs_.end() if there is none.
  Entries::const_iterator FindUnverified(const std::string& user, const std::string& name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Returns false if there was nothing to verify.
  bool VerifyOne(const std::string& user, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Shares the session's own blob, which has the digest in `name`.
  void ShareAs(const std::string& name, Entries::iterator own)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasSum(const std::string& user, const std::string& name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Store(const Key& key, Blob data) ABSL_LOCKS_EXCLUDED(mutex_);
  // Reserves this many more bytes for the blob; RESOURCE_EXHAUSTED.
  absl::Status Reserve(const std::string& name, int64_t bytes, bool is_exempt)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Refusal(const std::string& name, uint64_t bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Unreserve(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void KeepFromDropping(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetDropIfUnwanted(Entries::iterator found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Bytes that would be freed with this entry.
  static int64_t BytesOnlyOf(const Entry& entry) {
    return entry.names.use_count() == 1 ? entry.data->size() : 0;
  }
  // Moves the data of used blobs, oldest first, to `dropped`: at least `bytes`, or all; with a
  // `user`, only that user's.
  void DropUsed(int64_t bytes, const std::string& user, std::vector<Blob>* dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the entry to held_ for each of its holders, or removes it.
  void NoteHolders(const Key& key, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetHolders(const Key& key, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetHolder(const Key& key, SessionNumber session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropHolder(Entries::iterator entry, SessionNumber session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  size_t entries() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return blobs_.size() + held_.size() + used_.size();
  }
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void ValidateEntry(const Key& key, const Entry& entry) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void ValidateBytes() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const int64_t limit_;
  const std::shared_ptr<ChunkRecycler> recycler_;
  mutable absl::Mutex mutex_;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // that have arrived
  int64_t uploading_bytes_ ABSL_GUARDED_BY(mutex_) =
      0;  // of those, the bytes of unfinished uploads
  Entries blobs_ ABSL_GUARDED_BY(mutex_);
  // By holder, so that closing a session need not search all blobs.
  std::map<SessionNumber, std::set<Key>> held_ ABSL_GUARDED_BY(mutex_);
  // Users and names whose blobs a thread is verifying.
  std::set<std::pair<std::string, std::string>> verifying_ ABSL_GUARDED_BY(mutex_);
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  // Content-addressed blobs that no session wants since a buffer was made from them, oldest first.
  std::map<int64_t, Key> used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_BLOB_STORE_H_
