#include "server/quota/meter.h"

#include <limits>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/errors/errors.h"

namespace kiln::quota {
namespace {

TEST(Meter, HoldsItsLimit) {
  Meter meter({"ann", Resource::kPrograms}, 10);
  ASSERT_TRUE(meter.Take(7).ok());
  EXPECT_FALSE(meter.IsFull());
  const absl::Status refused = meter.Take(4);
  EXPECT_EQ(errors::Reason(refused), "QUOTA_EXCEEDED");
  EXPECT_EQ(errors::Details(refused).at("used"), "7");
  EXPECT_EQ(meter.used(), 7);
  EXPECT_TRUE(meter.Take(3).ok());
  EXPECT_TRUE(meter.IsFull());
  meter.Give(10);
  EXPECT_EQ(meter.used(), 0);
}

TEST(Meter, WithoutALimitEverythingFits) {
  Meter meter;
  EXPECT_TRUE(meter.Take(int64_t{1} << 62).ok());
  EXPECT_TRUE(meter.Check(int64_t{1} << 62).ok());
  EXPECT_FALSE(meter.IsFull());
  meter.Give(int64_t{1} << 62);
}

TEST(Meter, HugeAmountsDoNotOverflow) {
  Meter meter({"ann", Resource::kDeviceMemory, "cpu:0"}, 1000);
  ASSERT_TRUE(meter.Take(900).ok());
  EXPECT_FALSE(meter.Take(std::numeric_limits<int64_t>::max()).ok());
  EXPECT_EQ(meter.used(), 900);
  meter.Give(900);
}

TEST(Meter, ALoweredLimitTakesNothingAway) {
  Meter meter({"ann", Resource::kBuffers}, 0);
  auto share = meter.Reserve(8);
  ASSERT_TRUE(share.ok());
  meter.SetLimit(4);
  EXPECT_EQ(meter.used(), 8);
  EXPECT_FALSE(meter.Take(1).ok());
  *share = Share();
  EXPECT_EQ(meter.used(), 0);
  EXPECT_TRUE(meter.Take(4).ok());
  meter.Give(4);
}

TEST(Meter, SharesGiveBackOnce) {
  Meter meter({"ann", Resource::kPrograms}, 3);
  {
    auto share = *meter.Reserve(2);
    Share moved = std::move(share);
    share.Release();
    EXPECT_EQ(meter.used(), 2);
    EXPECT_FALSE(meter.Reserve(2).ok());
    moved.Release();
  }
  EXPECT_EQ(meter.used(), 0);
}

TEST(MeterDeathTest, EndsTheProcessIfAnAmountIsNotGivenBack) {
  const auto leave_some = [] {
    Meter meter({"ann", Resource::kPrograms}, 3);
    meter.ForceTake(2);
    meter.Give(1);
  };
  EXPECT_DEATH(leave_some(), "invariant violated: used\\(\\) == 0 .1 and 0.: programs of user ann");
}

TEST(Meter, ChecksWhatDoesNotAddUp) {
  const Meter meter({"ann", Resource::kGraphNodes}, 5);
  EXPECT_TRUE(meter.Check(5).ok());
  EXPECT_EQ(errors::Details(meter.Check(6)).at("quota"), "graph_nodes");
}

TEST(Meter, ManyThreadsNeverGetMoreThanTheLimit) {
  Meter meter({"ann", Resource::kOperations}, 3);
  std::atomic<int64_t> held{0};
  std::atomic<bool> too_many{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10'000; ++j) {
        if (!meter.Take(1).ok()) continue;
        if (++held > 3) too_many = true;
        --held;
        meter.Give(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(too_many);
  EXPECT_EQ(meter.used(), 0);
}

}  // namespace
}  // namespace kiln::quota
