#include "server/quota/gate.h"

#include <atomic>
#include <optional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::quota {
namespace {

class GateTest : public ::testing::Test {
 protected:
  void SetUp() override { gate_.SetLimit(100); }
  bool Ask(Gate::Pass& pass, int* told) {
    return pass.MayGoOn([told] { ++*told; });
  }
  Gate gate_{{"ann", Resource::kUploadBytes}};
};

TEST_F(GateTest, AtTheLimitTheOldestAloneGoesOn) {
  auto first = gate_.Enter(), second = gate_.Enter(), third = gate_.Enter();
  int told[3] = {};
  second->Add(60);
  EXPECT_TRUE(Ask(*second, &told[1]));
  third->Add(60);
  EXPECT_FALSE(Ask(*third, &told[2]));
  EXPECT_FALSE(Ask(*second, &told[1]));
  EXPECT_TRUE(Ask(*first, &told[0]));
  first->Add(1000);
  EXPECT_TRUE(Ask(*first, &told[0]));
  EXPECT_EQ(gate_.meter().used(), 1120);
  // The next one is then the oldest; the limit does not allow others yet.
  first.reset();
  EXPECT_EQ(told[1], 1);
  EXPECT_EQ(told[2], 0);
  second.reset();
  EXPECT_EQ(told[2], 1);
  third.reset();
  EXPECT_EQ(gate_.meter().used(), 0);
  EXPECT_EQ(told[0] + told[1] + told[2], 2);
}

TEST_F(GateTest, WhoEndsWhileHeWaitsIsNotTold) {
  auto first = gate_.Enter(), second = gate_.Enter();
  int told = 0;
  first->Add(100);
  EXPECT_FALSE(Ask(*second, &told));
  second.reset();
  first.reset();
  EXPECT_EQ(told, 0);
}

TEST_F(GateTest, ARaisedLimitLetsAllGoOn) {
  auto first = gate_.Enter(), second = gate_.Enter(), third = gate_.Enter();
  int told = 0;
  first->Add(100);
  EXPECT_FALSE(Ask(*second, &told));
  EXPECT_FALSE(Ask(*third, &told));
  gate_.SetLimit(0);
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(Ask(*third, &told));
}

// Each brings more than the limit allows beside the others; all get through.
TEST_F(GateTest, ManyThreadsComeThrough) {
  std::vector<std::thread> threads;
  std::atomic<int> through{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        auto pass = gate_.Enter();
        for (int piece = 0; piece < 10; ++piece) {
          absl::Notification may;
          if (!pass->MayGoOn([&] { may.Notify(); })) may.WaitForNotification();
          pass->Add(20);
        }
        ++through;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(through, 400);
  EXPECT_EQ(gate_.meter().used(), 0);
}

}  // namespace
}  // namespace kiln::quota
