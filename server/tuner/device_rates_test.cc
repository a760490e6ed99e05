#include "server/tuner/device_rates.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

constexpr char kCopy[] =
    "buffer b0 float32[1000] read\nbuffer b1 float32[1000] write\nstage r0:1000\n  b1[r0] = "
    "b0[r0]\n";
// 2 * 8 * 8 * 100 operations, all of them fused; one thread may compute each row.
constexpr char kMatmul[] =
    "buffer b0 float32[800] read\nbuffer b1 float32[800] read\nbuffer b2 float32[64] write\n"
    "stage r0:8 r1:8 reduce r2:100\n  b2[r0*8 + r1] = sum(b0[r0*100 + r2]*b1[r2*8 + r1])\n";
// A sum that one thread computes.
constexpr char kSum[] =
    "buffer b0 float64[1000] read\nbuffer b1 float64[1] write\nstage reduce r0:1000\n  b1[0] = "
    "sum(b0[r0] + b0[r0])\n";

DeviceRates Rates() {
  DeviceRates rates;
  rates.all = {.float32 = {.fused = 4000, .other = 2000},
               .float64 = {.fused = 400, .other = 200},
               .traffic = {{.bytes = 1000, .read = 1e9},
                           {.bytes = 100'000, .read = 8000, .write = 4000, .copy = 2000}}};
  rates.thread = {.float32 = {.fused = 1000, .other = 500},
                  .float64 = {.fused = 100, .other = 50},
                  .traffic = {{.bytes = 1000, .read = 1e8},
                              {.bytes = 100'000, .read = 4000, .write = 2000, .copy = 1000}}};
  rates.threads = 4;
  rates.launch_seconds = 0.001;
  return rates;
}

TEST(DeviceRatesTest, ARooflineIsTheSlowestOfComputeMemoryAndLaunch) {
  EXPECT_EQ(RooflineOf(kMatmul, Rates()), (Roofline{12800.0 / 4000, Limit::kCompute}));
  // It fits the caches, where reads and writes go side by side.
  EXPECT_EQ(RooflineOf(kCopy, Rates()), (Roofline{0.001, Limit::kLaunch}));
  DeviceRates rates = Rates();
  rates.all.traffic.erase(rates.all.traffic.begin());
  rates.thread.traffic.erase(rates.thread.traffic.begin());
  EXPECT_EQ(RooflineOf(kCopy, rates), (Roofline{8000.0 / 2000, Limit::kMemory}));
}

TEST(DeviceRatesTest, AWorkThatIsNotDividedHasTheRateOfOneThread) {
  // Additions of the values and of the sum.
  EXPECT_EQ(RooflineOf(kSum, Rates()), (Roofline{2000.0 / 50, Limit::kCompute}));
}

TEST(DeviceRatesTest, WhatWasNotMeasuredLimitsNothing) {
  EXPECT_EQ(RooflineOf(kMatmul, DeviceRates()), Roofline());
  EXPECT_EQ(RooflineOf("no kernel\n", Rates()), Roofline());
  DeviceRates rates = Rates();
  rates.all.float32 = rates.thread.float32 = {};
  EXPECT_NE(RooflineOf(kMatmul, rates).limit, Limit::kCompute);
}

TEST(DeviceRatesTest, ANoticeablyFasterKernelBeatsItsRoofline) {
  const Roofline roofline{1, Limit::kMemory};
  EXPECT_TRUE(IsBeaten(roofline, 0.9));
  EXPECT_FALSE(IsBeaten(roofline, 0.98));
  EXPECT_FALSE(IsBeaten(roofline, 0));  // not measured
  EXPECT_FALSE(IsBeaten(Roofline(), 1e-9));
}

TEST(DeviceRatesTest, TheHighestOfTwoMeasurementsCount) {
  DeviceRates slow = Rates(), other = Rates();
  slow.all.float32.fused = 1;
  slow.all.traffic[1].copy = 1;
  slow.launch_seconds = 9;
  other.thread.traffic[0].read = 1;
  EXPECT_EQ(Highest(slow, other), Rates());
  EXPECT_EQ(Highest(other, slow), Rates());
}

TEST(DeviceRatesTest, RatesSurviveEncoding) {
  const std::string bytes = EncodeRates(Rates());
  EXPECT_EQ(DecodeRates(bytes), Rates());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeRates(bytes.substr(0, size))) << size;
  EXPECT_FALSE(DecodeRates(bytes + " "));
  DeviceRates wrong = Rates();
  wrong.all.float32.fused = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(DecodeRates(EncodeRates(wrong)));
  wrong = Rates();
  wrong.thread.traffic[0].bytes = wrong.thread.traffic[1].bytes;
  EXPECT_FALSE(DecodeRates(EncodeRates(wrong)));
}

}  // namespace
}  // namespace kiln::tuner
