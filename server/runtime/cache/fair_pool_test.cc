#include "server/runtime/cache/fair_pool.h"

#include <atomic>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::runtime {
namespace {

const int kOwners[3] = {};
const void* const kGreedy = &kOwners[0];

TEST(FairPool, ANewcomerFindsAThread) {
  absl::Notification go;
  FairPool pool(2, 1);
  for (int i = 0; i < 10; ++i) pool.Schedule(kGreedy, [&] { go.WaitForNotification(); });
  absl::Notification served;
  pool.Schedule(&kOwners[1], [&] { served.Notify(); });
  served.WaitForNotification();
  go.Notify();
}

TEST(FairPool, OwnersTakeTurnsAndKeepTheirOrder) {
  absl::Notification go;
  std::vector<int> order;
  {
    FairPool pool(1, 1);
    pool.Schedule(&kOwners[2], [&] { go.WaitForNotification(); });
    for (int i = 0; i < 3; ++i) pool.Schedule(kGreedy, [&order, i] { order.push_back(i); });
    for (int i = 10; i < 12; ++i) pool.Schedule(&kOwners[1], [&order, i] { order.push_back(i); });
    go.Notify();
  }
  EXPECT_THAT(order, ::testing::ElementsAre(0, 10, 1, 11, 2));
}

// Even if one owner may have all threads.
TEST(FairPool, AThousandTasksOfOneDelayAnothersByOneAThread) {
  constexpr int kThreads = 3;
  absl::Mutex mutex;
  int begun = 0, may_end = 0, before = 0;
  absl::Notification served;
  FairPool pool(kThreads, kThreads);
  for (int i = 0; i < 1000; ++i) {
    pool.Schedule(kGreedy, [&, i] {
      absl::MutexLock lock(&mutex);
      ++begun;
      const auto ends = [&] { return i < may_end; };
      mutex.Await(absl::Condition(&ends));
    });
  }
  const auto is_full = [&] { return begun == kThreads; };
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&is_full));
  pool.Schedule(&kOwners[1], [&] {
    absl::MutexLock in_task(&mutex);
    before = begun;
    served.Notify();
  });
  may_end = kThreads;
  mutex.Unlock();
  served.WaitForNotification();
  mutex.Lock();
  EXPECT_LT(before, 2 * kThreads);
  may_end = 1000;
}

TEST(FairPool, HoldsABoundedNumberOfOneOwnersTasks) {
  absl::Notification go;
  FairPool pool(1, 1);
  absl::Notification begun;
  pool.Schedule(kGreedy, [&] {
    begun.Notify();
    go.WaitForNotification();
  });
  begun.WaitForNotification();
  EXPECT_TRUE(pool.TrySchedule(kGreedy, 2, [] {}));
  EXPECT_TRUE(pool.TrySchedule(kGreedy, 2, [] {}));
  EXPECT_FALSE(pool.TrySchedule(kGreedy, 2, [] { ADD_FAILURE() << "it was refused"; }));
  EXPECT_TRUE(pool.TrySchedule(&kOwners[1], 2, [] {}));
  go.Notify();
}

TEST(FairPool, OneOwnerRunsSoManyAtATime) {
  std::atomic<int> running{0};
  std::atomic<int> highest{0};
  {
    FairPool pool(4, 2);
    for (int i = 0; i < 200; ++i) {
      pool.Schedule(kGreedy, [&] {
        const int now = ++running;
        int seen = highest;
        while (now > seen && !highest.compare_exchange_weak(seen, now)) {
        }
        --running;
      });
    }
  }
  EXPECT_EQ(running, 0);
  EXPECT_LE(highest, 2);
}

// Unlimited tasks that an earlier daemon accepted leave room for tasks with a limit.
TEST(FairPool, OnlyWhatMayBeRefusedCounts) {
  absl::Notification go;
  FairPool pool(1, 1);
  for (int i = 0; i < 10; ++i) pool.Schedule(kGreedy, [&] { go.WaitForNotification(); });
  EXPECT_TRUE(pool.TrySchedule(kGreedy, 2, [] {}));
  EXPECT_TRUE(pool.TrySchedule(kGreedy, 2, [] {}));
  EXPECT_FALSE(pool.TrySchedule(kGreedy, 2, [] {}));
  go.Notify();
}

}  // namespace
}  // namespace kiln::runtime
