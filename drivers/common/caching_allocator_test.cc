#include "drivers/common/caching_allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::drivers {
namespace {

using ::testing::HasSubstr;

// Memory that the allocator took from the system and has not released. Thread-safe.
struct System {
  std::atomic<int64_t> bytes = 0;
  std::atomic<int> calls = 0;
  int64_t limit = INT64_MAX;

  CachingAllocator::Options Options(int64_t memory, int64_t cache) {
    return {.device = "test:0",
            .memory_bytes = memory,
            .cache_bytes = cache,
            .allocate =
                [this](int64_t size) {
                  if (bytes + size > limit) return static_cast<void*>(nullptr);
                  bytes += size;
                  ++calls;
                  return std::malloc(size);
                },
            .release =
                [this](void* memory, int64_t size) {
                  bytes -= size;
                  std::free(memory);
                }};
  }
};

TEST(CachingAllocatorTest, SizeClassesAreCloseAndStable) {
  EXPECT_EQ(CachingAllocator::SizeClass(0), 64);
  EXPECT_EQ(CachingAllocator::SizeClass(64), 64);
  EXPECT_EQ(CachingAllocator::SizeClass(65), 128);
  for (int64_t bytes = 1; bytes < (int64_t{1} << 40); bytes += 1 + bytes / 7) {
    const int64_t size = CachingAllocator::SizeClass(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_EQ(size % 64, 0);
    EXPECT_EQ(CachingAllocator::SizeClass(size), size) << bytes;
    EXPECT_LE(size, bytes + std::max<int64_t>(64, bytes / 8 + 1)) << bytes;
  }
}

TEST(CachingAllocatorTest, FreedBlocksServeTheNext) {
  System system;
  CachingAllocator allocator(system.Options(1 << 20, 1 << 20));
  void* first = *allocator.Allocate(1000);
  allocator.Free(first, 1000);
  EXPECT_EQ(allocator.cached_bytes(), 1024);
  EXPECT_EQ(*allocator.Allocate(1010), first);  // of the same size class
  EXPECT_EQ(system.calls, 1);
  allocator.Free(first, 1010);
}

TEST(CachingAllocatorTest, TheCacheIsBounded) {
  System system;
  CachingAllocator allocator(system.Options(1 << 20, 4096));
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(*allocator.Allocate(1024));
  for (void* block : blocks) allocator.Free(block, 1024);
  EXPECT_EQ(allocator.cached_bytes(), 4096);
  EXPECT_EQ(system.bytes, 4096);
  allocator.Free(*allocator.Allocate(8192), 8192);  // too large to keep
  EXPECT_EQ(system.bytes, 4096);
}

TEST(CachingAllocatorTest, CachedBlocksMakeRoom) {
  System system;
  CachingAllocator allocator(system.Options(8192, 8192));
  allocator.Free(*allocator.Allocate(4096), 4096);
  void* large = *allocator.Allocate(8192);
  EXPECT_EQ(system.bytes, 8192);
  EXPECT_EQ(allocator.cached_bytes(), 0);
  allocator.Free(large, 8192);
}

TEST(CachingAllocatorTest, ExhaustionSaysWhatIsLeft) {
  System system;
  CachingAllocator allocator(system.Options(10240, 0));
  void* block = *allocator.Allocate(4096);
  const absl::Status refused = allocator.Allocate(8000).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("test:0"));
  EXPECT_THAT(
      refused.message(),
      HasSubstr("8000 bytes were requested, which need 8192, 6144 of 10240 bytes are free"));
  allocator.Free(block, 4096);
}

TEST(CachingAllocatorTest, ASystemWithoutMemoryIsTriedAgainWithoutTheCache) {
  System system;
  system.limit = 4096;
  CachingAllocator allocator(system.Options(1 << 20, 1 << 20));
  allocator.Free(*allocator.Allocate(1024), 1024);
  void* all = *allocator.Allocate(4096);
  EXPECT_EQ(allocator.Allocate(64).status().code(), absl::StatusCode::kResourceExhausted);
  allocator.Free(all, 4096);
}

// A device's driver may wait for running work before it releases memory.
TEST(CachingAllocatorTest, ASlowReleaseHoldsUpOnlyWhoNeedsItsMemory) {
  absl::Notification releasing, release, small_served;
  std::atomic<int64_t> held = 0;
  int64_t highest_held = 0;
  {
    CachingAllocator allocator({.device = "test:0",
                                .memory_bytes = 8192,
                                .cache_bytes = 1024,
                                .allocate =
                                    [&](int64_t size) {
                                      highest_held = std::max(highest_held, held += size);
                                      return std::malloc(size);
                                    },
                                .release =
                                    [&](void* memory, int64_t size) {
                                      if (size == 4096) {
                                        releasing.Notify();
                                        release.WaitForNotification();
                                      }
                                      held -= size;
                                      std::free(memory);
                                    }});
    void* slow = *allocator.Allocate(4096);
    std::thread slow_thread([&] { allocator.Free(slow, 4096); });
    releasing.WaitForNotification();
    std::thread small_thread([&] {
      allocator.Free(*allocator.Allocate(64), 64);
      small_served.Notify();
    });
    small_served.WaitForNotification();
    // The limit allows this, but not before the other block is released.
    std::thread large_thread([&] { allocator.Free(*allocator.Allocate(8192), 8192); });
    EXPECT_TRUE(kiln::testing::Eventually([&] { return allocator.waiting() == 1 || held > 8192; }));
    EXPECT_LE(held, 8192);
    release.Notify();
    slow_thread.join();
    small_thread.join();
    large_thread.join();
  }
  EXPECT_EQ(highest_held, 8192);
  EXPECT_EQ(held, 0);
}

TEST(CachingAllocatorTest, EverythingGoesBackAtTheEnd) {
  System system;
  {
    CachingAllocator allocator(system.Options(1 << 20, 1 << 20));
    for (int64_t bytes : {1, 100, 1000, 10000}) allocator.Free(*allocator.Allocate(bytes), bytes);
    EXPECT_GT(system.bytes, 0);
  }
  EXPECT_EQ(system.bytes, 0);
}

TEST(CachingAllocatorTest, ThreadsShareIt) {
  System system;
  CachingAllocator allocator(system.Options(1 << 20, 1 << 16));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      for (int i = 0; i < 500; ++i) {
        auto block = allocator.Allocate(100 * (t + 1) + i);
        ASSERT_TRUE(block.ok());
        static_cast<char*>(*block)[i] = 1;
        allocator.Free(*block, 100 * (t + 1) + i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // All of the memory is available: nothing counts as live.
  const auto all = allocator.Allocate(1 << 20);
  ASSERT_TRUE(all.ok()) << all.status();
  allocator.Free(*all, 1 << 20);
}

}  // namespace
}  // namespace kiln::drivers
