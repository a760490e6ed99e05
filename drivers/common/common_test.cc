// Tests of the small parts that drivers share; tests/conformance tests check.h and reissue.h on
// every driver.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "drivers/common/dynamic_library.h"
#include "drivers/common/submission_queue.h"
#include "drivers/interface/signal_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::drivers {
namespace {

using ::testing::HasSubstr;

TEST(DynamicLibraryTest, FindsFunctions) {
  auto library = DynamicLibrary::Open("libm.so.6");
  ASSERT_TRUE(library.ok()) << library.status();
  double (*cube_root)(double) = nullptr;
  ASSERT_TRUE((*library)->Find("cbrt", &cube_root).ok());
  EXPECT_DOUBLE_EQ(cube_root(27), 3);
}

TEST(DynamicLibraryTest, NamesWhatIsMissing) {
  const absl::Status no_library = DynamicLibrary::Open("libno_such_vendor.so.1").status();
  EXPECT_EQ(no_library.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(no_library.message(), HasSubstr("libno_such_vendor.so.1"));
  auto library = DynamicLibrary::Open("libm.so.6");
  ASSERT_TRUE(library.ok());
  void (*function)() = nullptr;
  const absl::Status no_symbol = (*library)->Find("no_such_function", &function);
  EXPECT_EQ(no_symbol.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(no_symbol.message(), HasSubstr("no_such_function"));
  EXPECT_EQ(function, nullptr);
}

TEST(SubmissionQueueTest, RunsInOrderAndWaits) {
  SubmissionQueue queue("test");
  std::vector<int> order;  // written only by the queue's thread
  for (int i = 0; i < 1000; ++i) queue.Push([&order, i] { order.push_back(i); });
  queue.Wait();
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(SubmissionQueueTest, WaitIsForWhatWasPushedBefore) {
  SubmissionQueue queue("test");
  std::atomic<int> ended = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        std::atomic<bool> mine = false;
        queue.Push([&] { mine = true, ++ended; });
        queue.Wait();
        EXPECT_TRUE(mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 800);
}

TEST(SubmissionQueueTest, TheEndRunsWhatIsLeft) {
  int ran = 0;
  {
    SubmissionQueue queue("test");
    for (int i = 0; i < 100; ++i) queue.Push([&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST(SignalGroupTest, SignalsStayRaised) {
  SignalGroup group(std::make_shared<Signals>(8));
  group.Raise(7);
  EXPECT_TRUE(group.Wait(7).ok());
  EXPECT_TRUE(group.Wait(7).ok());
}

TEST(SignalGroupTest, AbortEndsWaitsAndKeepsTheFirstReason) {
  SignalGroup group(std::make_shared<Signals>(8));
  group.Raise(1);
  std::thread waiter([&group] { EXPECT_EQ(group.Wait(2).message(), "first"); });
  group.Abort(absl::CancelledError("first"));
  group.Abort(absl::InternalError("second"));
  waiter.join();
  EXPECT_TRUE(group.Wait(1).ok());
  EXPECT_EQ(group.Wait(3).message(), "first");
}

}  // namespace
}  // namespace kiln::drivers
