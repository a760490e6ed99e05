// Compiled kernels on disk: one SQLite database in WAL mode.
//
// Deleting the file, even while a daemon runs, only costs compilations; so does SIGKILL at any
// moment. A database that cannot be read is moved aside (`kernels.sqlite.damaged`) and a new one is
// created. If no database can be opened at all, the cache is empty and the daemon continues. In a
// folder that cannot be written to, existing kernels are used and none are added.
//
// Values are executed, so they must be what this user's daemons have stored under this key. The
// folder must be private to the user (0700), else it is refused, and each row is sealed with the
// secret in `kernels.key` (secret.h). A row with a wrong seal is dropped and counts as missing.
#ifndef KILN_SERVER_CACHE_KERNEL_CACHE_H_
#define KILN_SERVER_CACHE_KERNEL_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compiler/compiler.h"
#include "server/cache/secret.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kiln::cache {

// Thread-safe. Keys are stored as their SHA-256.
class KernelCache : public compiler::KernelCache {
 public:
  struct Options {
    std::string folder;                      // created if it does not exist
    int64_t limit_bytes = int64_t{4} << 30;  // least recently used kernels are evicted first
    std::function<absl::Time()> now;         // for `used` times
  };
  // kRejected: there was a row, but it is not what was stored under this key.
  enum class Lookup { kHit, kMiss, kRejected };
  struct Statistics {
    std::string path;
    int64_t kernels = 0;
    int64_t bytes = 0;
    int64_t hits = 0;  // since the daemon started
    int64_t misses = 0;
  };

  explicit KernelCache(Options options);
  ~KernelCache() override;

  std::optional<std::string> Get(const std::string& key) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Put(const std::string& key, const std::string& value) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Deletes all kernels; returns how many there were.
  absl::StatusOr<int64_t> Clear() ABSL_LOCKS_EXCLUDED(mutex_);
  Statistics GetStatistics() ABSL_LOCKS_EXCLUDED(mutex_);
  // `observer` is called after every Get.
  void SetObserver(std::function<void(Lookup)> observer) { observer_ = std::move(observer); }

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
  // Removes a row with a wrong seal.
  void Drop(const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveAside(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::string path_;
  std::function<void(Lookup)> observer_;
  std::atomic<int64_t> hits_{0};
  std::atomic<int64_t> misses_{0};
  absl::Mutex mutex_;
  std::optional<Secret> secret_ ABSL_GUARDED_BY(mutex_);  // set if database_ is
  std::unique_ptr<Database> database_ ABSL_GUARDED_BY(mutex_);
  bool complained_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln::cache

#endif  // KILN_SERVER_CACHE_KERNEL_CACHE_H_
