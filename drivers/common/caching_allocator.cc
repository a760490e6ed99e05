#include "drivers/common/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace kiln::drivers {
namespace {

constexpr int64_t kSmallest = 64;
constexpr int kClassesPerDoubling = 8;
// Beyond this rounding up would overflow; no device has as much.
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max() / 2;

}  // namespace

CachingAllocator::CachingAllocator(Options options) : options_(std::move(options)) {}

CachingAllocator::~CachingAllocator() {
  absl::MutexLock lock(&mutex_);
  Trim(0);
}

int64_t CachingAllocator::SizeClass(int64_t bytes) {
  if (bytes <= kSmallest * kClassesPerDoubling) {
    return std::max<int64_t>(kSmallest, (bytes + kSmallest - 1) / kSmallest * kSmallest);
  }
  // An eighth of the power of two below, so that between two powers there are eight classes.
  const int64_t step =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes - 1))) / kClassesPerDoubling;
  return (bytes + step - 1) / step * step;
}

absl::StatusOr<void*> CachingAllocator::Allocate(int64_t bytes) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("a buffer of ", bytes, " bytes"));
  absl::MutexLock lock(&mutex_);
  if (bytes > kLargest) return Exhausted(bytes);
  const int64_t size = SizeClass(bytes);
  // The cache may give way; what others hold may not.
  if (size > options_.memory_bytes - live_bytes_) return Exhausted(bytes);
  void* memory = TakeCached(size);
  if (memory == nullptr) {
    // Cached blocks of other sizes count within the limit, too.
    Trim(options_.memory_bytes - live_bytes_ - size);
    memory = options_.allocate(size);
    if (memory == nullptr) {
      Trim(0);
      // The system may be out of memory before the limit is reached; what is cached is memory that
      // it lacks.
      memory = options_.allocate(size);
    }
    if (memory == nullptr) return Exhausted(bytes);
  }
  live_bytes_ += size;
  return memory;
}

void CachingAllocator::Free(void* memory, int64_t bytes) {
  const int64_t size = SizeClass(bytes);
  absl::MutexLock lock(&mutex_);
  live_bytes_ -= size;
  // It would drive out everything else and still not fit.
  if (size > options_.cache_bytes) return options_.release(memory, size);
  Trim(options_.cache_bytes - size);
  cache_[size].push_back(memory);
  cached_bytes_ += size;
}

int64_t CachingAllocator::cached_bytes() const {
  absl::MutexLock lock(&mutex_);
  return cached_bytes_;
}

absl::Status CachingAllocator::Exhausted(int64_t bytes) const {
  return absl::ResourceExhaustedError(absl::StrCat(
      options_.device, " is out of memory: ", bytes, " bytes asked for, which take ",
      bytes > kLargest ? bytes : SizeClass(bytes), ", ", options_.memory_bytes - live_bytes_,
      " left of ", options_.memory_bytes, "; release tensors or use a smaller batch"));
}

void* CachingAllocator::TakeCached(int64_t size) {
  auto found = cache_.find(size);
  if (found == cache_.end()) return nullptr;
  void* memory = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) cache_.erase(found);
  cached_bytes_ -= size;
  return memory;
}

void CachingAllocator::Trim(int64_t bytes) {
  while (cached_bytes_ > bytes) {
    const int64_t size = cache_.rbegin()->first;
    options_.release(TakeCached(size), size);
  }
}

}  // namespace kiln::drivers
