#include "drivers/common/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::drivers {
namespace {

constexpr int64_t kSmallest = 64;
constexpr int kClassesPerDoubling = 8;
// Above this, rounding up would overflow; no device has as much memory.
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max() / 2;

}  // namespace

CachingAllocator::CachingAllocator(Options options) : options_(std::move(options)) {
  KILN_CHECK(options_.allocate != nullptr && options_.release != nullptr) << options_.device;
}

CachingAllocator::~CachingAllocator() {
  std::vector<Block> rest;
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK_EQ(live_bytes_, 0) << "of " << options_.device << " at the end";
    KILN_CHECK_EQ(waiting_, 0) << options_.device;
    rest = Trim(0);
  }
  Release(rest);
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_EQ(leaving_bytes_, 0) << options_.device;
}

void CachingAllocator::Validate() const {
  KILN_CHECK_GE(live_bytes_, 0);
  KILN_CHECK_GE(leaving_bytes_, 0);
  KILN_CHECK_GE(waiting_, 0);
  int64_t bytes = 0;
  int64_t blocks = 0;
  std::set<const void*> distinct;
  for (const auto& [size, memories] : cache_) {
    KILN_CHECK(!memories.empty()) << "of " << size << " bytes";
    KILN_CHECK_EQ(size, SizeClass(size));
    bytes += size * static_cast<int64_t>(memories.size());
    blocks += static_cast<int64_t>(memories.size());
    for (const void* memory : memories) {
      KILN_CHECK(memory != nullptr) << "of " << size << " bytes";
      const bool is_new = distinct.insert(memory).second;
      KILN_CHECK(is_new) << "a block of " << size << " bytes is cached twice";
    }
  }
  KILN_CHECK_EQ(bytes, cached_bytes_);
  KILN_CHECK_EQ(blocks, cached_blocks_);
  // A device may report a memory that is no positive number.
  KILN_CHECK_LE(cached_bytes_, std::max<int64_t>(options_.cache_bytes, 0));
  KILN_CHECK_LE(cached_bytes_, std::max<int64_t>(options_.memory_bytes, 0) - live_bytes_);
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
    KILN_CHECK_LE(live_bytes_, options_.memory_bytes) << options_.device;
    if (is_new != nullptr) *is_new = memory == nullptr;
    // Cached blocks of other sizes count against the limit, too.
    if (memory == nullptr) leaving = Trim(options_.memory_bytes - live_bytes_);
    KILN_VALIDATE(*this, cached_blocks_);
    if (memory != nullptr) return memory;
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
  KILN_CHECK_GE(live_bytes_, size) << options_.device;
  live_bytes_ -= size;
  KILN_VALIDATE(*this, cached_blocks_);
  return Exhausted(bytes);
}

void CachingAllocator::Free(void* memory, int64_t bytes) {
  KILN_CHECK(memory != nullptr) << bytes << " bytes of " << options_.device;
  KILN_CHECK_GE(bytes, 0) << options_.device;
  const int64_t size = SizeClass(bytes);
  std::vector<Block> leaving;
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK_GE(live_bytes_, size) << "freed of " << options_.device;
    live_bytes_ -= size;
    if (size > options_.cache_bytes) {
      // Caching it would evict everything else and still not fit.
      leaving_bytes_ += size;
      leaving.push_back({memory, size});
    } else {
      leaving = Trim(options_.cache_bytes - size);
      cache_[size].push_back(memory);
      cached_bytes_ += size;
      ++cached_blocks_;
    }
    KILN_VALIDATE(*this, cached_blocks_);
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
  KILN_CHECK_GT(waiting_, 0) << options_.device;
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
  --cached_blocks_;
  KILN_CHECK(cached_bytes_ >= 0 && cached_blocks_ >= 0) << options_.device;
  return memory;
}

std::vector<CachingAllocator::Block> CachingAllocator::Trim(int64_t bytes) {
  std::vector<Block> leaving;
  while (cached_bytes_ > bytes) {
    KILN_CHECK(!cache_.empty()) << cached_bytes_ << " bytes are cached of " << options_.device;
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
    KILN_CHECK_GE(leaving_bytes_, size) << options_.device;
    leaving_bytes_ -= size;
  }
}

}  // namespace kiln::drivers
