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
// Above this, rounding up would overflow; no device has as much memory.
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max() / 2;

}  // namespace

CachingAllocator::CachingAllocator(Options options) : options_(std::move(options)) {}

CachingAllocator::~CachingAllocator() {
  std::vector<Block> rest;
  {
    absl::MutexLock lock(&mutex_);
    rest = Trim(0);
  }
  Release(rest);
}

int64_t CachingAllocator::SizeClass(int64_t bytes) {
  if (bytes <= kSmallest * kClassesPerDoubling) {
    return std::max<int64_t>(kSmallest, (bytes + kSmallest - 1) / kSmallest * kSmallest);
  }
  // An eighth of the next lower power of two, so that there are eight classes between two powers.
  const int64_t step =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes - 1))) / kClassesPerDoubling;
  return (bytes + step - 1) / step * step;
}

absl::StatusOr<void*> CachingAllocator::Allocate(int64_t bytes, bool* is_new) {
  if (bytes < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot allocate a buffer of ", bytes, " bytes"));
  int64_t size = 0;
  std::vector<Block> leaving;
  {
    absl::MutexLock lock(&mutex_);
    if (bytes > kLargest) return Exhausted(bytes);
    size = SizeClass(bytes);
    // Cached memory can be released, live memory cannot.
    if (size > options_.memory_bytes - live_bytes_) return Exhausted(bytes);
    void* memory = TakeCached(size);
    live_bytes_ += size;
    if (is_new != nullptr) *is_new = memory == nullptr;
    if (memory != nullptr) return memory;
    // Cached blocks of other sizes count against the limit, too.
    leaving = Trim(options_.memory_bytes - live_bytes_);
  }
  Release(leaving);
  AwaitReleases(absl::Condition(this, &CachingAllocator::IsWithinLimit));
  void* memory = options_.allocate(size);
  if (memory != nullptr) return memory;
  // The system may run out of memory before the limit is reached; releasing the cache may help.
  mutex_.Lock();
  leaving = Trim(0);
  mutex_.Unlock();
  Release(leaving);
  AwaitReleases(absl::Condition(this, &CachingAllocator::NothingLeaves));
  memory = options_.allocate(size);
  if (memory != nullptr) return memory;
  absl::MutexLock lock(&mutex_);
  live_bytes_ -= size;
  return Exhausted(bytes);
}

void CachingAllocator::Free(void* memory, int64_t bytes) {
  const int64_t size = SizeClass(bytes);
  std::vector<Block> leaving;
  {
    absl::MutexLock lock(&mutex_);
    live_bytes_ -= size;
    if (size > options_.cache_bytes) {
      // Caching it would evict everything else and still not fit.
      leaving_bytes_ += size;
      leaving.push_back({memory, size});
    } else {
      leaving = Trim(options_.cache_bytes - size);
      cache_[size].push_back(memory);
      cached_bytes_ += size;
    }
  }
  Release(leaving);
}

int64_t CachingAllocator::cached_bytes() const {
  absl::MutexLock lock(&mutex_);
  return cached_bytes_;
}

int CachingAllocator::waiting() const {
  absl::MutexLock lock(&mutex_);
  return waiting_;
}

void CachingAllocator::AwaitReleases(const absl::Condition& condition) {
  absl::MutexLock lock(&mutex_);
  ++waiting_;
  mutex_.Await(condition);
  --waiting_;
}

absl::Status CachingAllocator::Exhausted(int64_t bytes) const {
  return absl::ResourceExhaustedError(absl::StrCat(
      options_.device, " is out of memory: ", bytes, " bytes were requested, which need ",
      bytes > kLargest ? bytes : SizeClass(bytes), ", ", options_.memory_bytes - live_bytes_,
      " of ", options_.memory_bytes, " bytes are free; release tensors or use a smaller batch"));
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

std::vector<CachingAllocator::Block> CachingAllocator::Trim(int64_t bytes) {
  std::vector<Block> leaving;
  while (cached_bytes_ > bytes) {
    const int64_t size = cache_.rbegin()->first;
    leaving.push_back({TakeCached(size), size});
    leaving_bytes_ += size;
  }
  return leaving;
}

void CachingAllocator::Release(absl::Span<const Block> blocks) {
  for (const auto& [memory, size] : blocks) {
    options_.release(memory, size);
    absl::MutexLock lock(&mutex_);
    leaving_bytes_ -= size;
  }
}

}  // namespace kiln::drivers
