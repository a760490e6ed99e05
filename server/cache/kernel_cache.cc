#include "server/cache/kernel_cache.h"

#include <utility>

namespace kiln::cache {
namespace {

// Rows of earlier versions have no tag.
constexpr int64_t kKernelsVersion = 2;

}  // namespace

KernelCache::KernelCache(Options options)
    : table_({.folder = std::move(options.folder),
              .name = "kernels",
              .title = "kernel cache",
              .noun = "kernel",
              .loss = "the kernel is compiled again",
              .version = kKernelsVersion,
              .bytes_max = options.limit_bytes,
              .now = std::move(options.now)}) {}

std::optional<std::string> KernelCache::Get(const std::string& key) {
  std::optional<std::string> value;
  const Lookup lookup = table_.Get(key, &value);
  (value ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
  if (observer_) observer_(lookup);
  return value;
}

void KernelCache::Put(const std::string& key, const std::string& value) {
  // A kernel that is not stored is compiled again, and the table has logged why.
  table_.Put(key, value).IgnoreError();
}

absl::StatusOr<int64_t> KernelCache::Clear() { return table_.Clear(); }

KernelCache::Statistics KernelCache::GetStatistics() {
  const SealedTable::Statistics rows = table_.GetStatistics();
  return {.path = table_.path(),
          .kernels = rows.rows,
          .bytes = rows.bytes,
          .hits = hits_,
          .misses = misses_};
}

}  // namespace kiln::cache
