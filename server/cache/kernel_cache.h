// Compiled kernels on disk: a sealed table (sealed_table.h) of the user's.
//
// Values are executed, so they must be what this user's daemons have stored under this key; the
// table's seals see to that. A missing kernel only costs its compilation.
#ifndef KILN_SERVER_CACHE_KERNEL_CACHE_H_
#define KILN_SERVER_CACHE_KERNEL_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/compiler.h"
#include "server/cache/sealed_table.h"

namespace kiln::cache {

// Thread-safe.
class KernelCache : public compiler::KernelCache {
 public:
  struct Options {
    std::string folder;                      // created if it does not exist
    int64_t limit_bytes = int64_t{4} << 30;  // least recently used kernels are evicted first
    std::function<absl::Time()> now;         // for `used` times
  };
  using Lookup = SealedTable::Lookup;
  struct Statistics {
    std::string path;
    int64_t kernels = 0;
    int64_t bytes = 0;
    int64_t hits = 0;  // since the daemon started
    int64_t misses = 0;
  };

  explicit KernelCache(Options options);

  std::optional<std::string> Get(const std::string& key) override;
  void Put(const std::string& key, const std::string& value) override;

  // Deletes all kernels; returns how many there were.
  absl::StatusOr<int64_t> Clear();
  Statistics GetStatistics();
  // `observer` is called after every Get.
  void SetObserver(std::function<void(Lookup)> observer) { observer_ = std::move(observer); }

 private:
  std::function<void(Lookup)> observer_;
  std::atomic<int64_t> hits_{0};
  std::atomic<int64_t> misses_{0};
  SealedTable table_;
};

}  // namespace kiln::cache

#endif  // KILN_SERVER_CACHE_KERNEL_CACHE_H_
