#include "drivers/cpu/core_binding.h"

#include <sched.h>
#include <sys/resource.h>

#include <thread>
#include <vector>

#include "drivers/cpu/thread_control.h"
#include "gtest/gtest.h"

namespace kiln::drivers::cpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class BindingPolicyTest : public ::testing::Test {
 protected:
  // Wants a core for `wanted` and gets `share` of it.
  bool Run(milliseconds wanted, double share) {
    now_ += wanted;
    const auto had = std::chrono::duration_cast<BindingPolicy::Clock::duration>(wanted * share);
    return policy_.Update(wanted, had, now_);
  }
  // Returns how long the thread stays unbound under these conditions.
  milliseconds Freedom(double share) {
    milliseconds freedom{0};
    while (!Run(milliseconds(10), share)) freedom += milliseconds(10);
    return freedom;
  }

  BindingPolicy policy_;
  BindingPolicy::Clock::time_point now_;
};

TEST_F(BindingPolicyTest, StaysBoundToACoreOfItsOwn) {
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(Run(milliseconds(5), 0.98));
}

TEST_F(BindingPolicyTest, OneLostSliceIsNotEnough) {
  EXPECT_TRUE(Run(milliseconds(16), 1));
  EXPECT_TRUE(Run(milliseconds(4), 0));
  EXPECT_TRUE(Run(milliseconds(20), 1));
}

TEST_F(BindingPolicyTest, GoesFreeBesideABusyLoop) {
  EXPECT_TRUE(Run(milliseconds(10), 0.5));
  EXPECT_FALSE(Run(milliseconds(10), 0.5));
}

TEST_F(BindingPolicyTest, TriesAgainLessAndLessOften) {
  milliseconds before{0};
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(Run(milliseconds(10), 0.5));
    ASSERT_FALSE(Run(milliseconds(10), 0.5));
    const milliseconds freedom = Freedom(0.5);
    EXPECT_GE(freedom, BindingPolicy::kShortestFreedom - milliseconds(10));
    EXPECT_GE(freedom, before);
    EXPECT_LE(freedom, BindingPolicy::kLongestFreedom);
    before = freedom;
  }
  EXPECT_GE(before, BindingPolicy::kLongestFreedom - milliseconds(10));
}

TEST_F(BindingPolicyTest, ForgetsOldTroubles) {
  for (int i = 0; i < 12; ++i) {
    Run(milliseconds(20), 0.5);
    Freedom(0.5);
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Run(milliseconds(20), 1));
  EXPECT_FALSE(Run(milliseconds(20), 0.5));
  EXPECT_LE(Freedom(1), BindingPolicy::kShortestFreedom);
}

int CoresOfThisThread() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 0;
}

TEST(CoreBindingTest, BindsIfThereIsACoreForEachThread) {
  const int cores = static_cast<int>(AllowedCores().size());
  for (int threads = 1; threads <= cores + 1; ++threads) {
    int bound_to = 0;
    std::thread thread([&] {
      CoreBinding binding(threads - 1, threads, std::chrono::steady_clock::now);
      bound_to = CoresOfThisThread();
    });
    thread.join();
    EXPECT_EQ(bound_to, threads == cores ? 1 : cores) << threads << " threads";
  }
}

TEST(ThreadControlTest, TimeOfAThreadIsWhatItComputed) {
  while (ThreadTime() < milliseconds(20)) {
  }
  const auto before = ThreadTime();
  std::chrono::nanoseconds of_new_thread;
  std::thread thread([&] { of_new_thread = ThreadTime(); });
  thread.join();
  EXPECT_LT(of_new_thread, before) << "it has computed nothing yet";
}

TEST(ThreadControlTest, ShortSlicesKeepPolicyAndNiceness) {
  std::thread thread([] {
    setpriority(PRIO_PROCESS, 0, 5);
    PreferShortSlices();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), 5);
  });
  thread.join();
}

}  // namespace
}  // namespace kiln::drivers::cpu
