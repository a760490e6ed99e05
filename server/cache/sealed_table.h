// Rows on disk that the daemon can trust: one SQLite database in WAL mode, in a private folder.
//
// Deleting the file, even while a daemon runs, only costs its rows; SIGKILL at any moment costs
// none. A database that cannot be read is moved aside (`NAME.sqlite.damaged`) and a new one is
// created. If no database can be opened at all, the table is empty and the daemon continues. In a
// folder that cannot be written to, existing rows are used and none are added.
//
// The folder must be private to the user (0700), else it is refused, and each row is sealed with
// the secret in `NAME.key` (secret.h). A row with a wrong seal is dropped and counts as missing.
// Several daemons may use the same file at once.
#ifndef KILN_SERVER_CACHE_SEALED_TABLE_H_
#define KILN_SERVER_CACHE_SEALED_TABLE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/cache/secret.h"

namespace kiln::cache {

// Thread-safe. Keys are stored as their SHA-256.
class SealedTable {
 public:
  struct Options {
    std::string folder;  // created if it does not exist
    std::string name;    // of the table and its files: letters and "_"
    std::string title;   // for people, and with "_" for blanks in the names of log events
    std::string noun;    // a row, for people: "kernel"
    std::string loss;    // what the loss of a row means, for people
    // PRAGMA user_version. A table of an earlier version is dropped when it is opened.
    int64_t version = 1;
    // The least recently used rows are evicted first.
    int64_t bytes_max = std::numeric_limits<int64_t>::max();
    int64_t rows_max = std::numeric_limits<int64_t>::max();
    std::function<absl::Time()> now;  // for `used` times
  };
  // kRejected: there was a row, but it is not what was stored under this key.
  enum class Lookup { kHit, kMiss, kRejected };
  struct Statistics {
    int64_t rows = 0;
    int64_t bytes = 0;
  };

  explicit SealedTable(Options options);
  ~SealedTable();

  const std::string& path() const { return path_; }

  // Sets `value` if the result is kHit, and else to nullopt.
  Lookup Get(const std::string& key, std::optional<std::string>* value) ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces the row of this key. RESOURCE_EXHAUSTED: the value alone is above the limit.
  // FAILED_PRECONDITION: the folder cannot be written to. UNAVAILABLE: the row could not be
  // written; callers for which a lost row is not an error may ignore this.
  absl::Status Put(const std::string& key, const std::string& value) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `use` for every row with a right seal, the most recently used first. No call may come to
  // this table until it returns. UNAVAILABLE if the table cannot be read.
  absl::Status ForEach(const std::function<void(std::string_view value)>& use)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same in no particular order, and a page of at most 256 KiB, or one row, at a time. `use`
  // and other threads may call this table in between. Each row that is there all the time is given
  // once, as it was before or after a Put meanwhile.
  absl::Status ForEachInPages(const std::function<void(std::string_view value)>& use)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Deletes all rows; returns how many there were.
  absl::StatusOr<int64_t> Clear() ABSL_LOCKS_EXCLUDED(mutex_);
  Statistics GetStatistics() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Database;

  absl::Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For a folder that cannot be written to.
  absl::Status OpenReadOnly() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Opens the database again if the file was deleted or replaced meanwhile. Returns false if there
  // is no database.
  bool Ready() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Lookup Find(const std::string& digest, std::optional<std::string>* value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads rows after this digest, which it sets to that of the last one. Returns true if there may
  // be more.
  absl::StatusOr<bool> ReadPage(std::string* after, std::vector<std::string>* values)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the status of reading rows, from the last step of a statement, which was reset.
  absl::Status AfterReading(int step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes a row with a wrong seal.
  void Drop(const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveAside(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CannotOpen() const;
  absl::Status IsReadOnlyError() const;
  std::string Event(const char* what) const;

  const Options options_;
  const std::string path_;
  absl::Mutex mutex_;
  std::optional<Secret> secret_ ABSL_GUARDED_BY(mutex_);  // set if database_ is
  std::unique_ptr<Database> database_ ABSL_GUARDED_BY(mutex_);
  bool complained_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln::cache

#endif  // KILN_SERVER_CACHE_SEALED_TABLE_H_
