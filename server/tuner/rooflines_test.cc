#include "server/tuner/rooflines.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

class RooflinesTest : public ::testing::Test {
 protected:
  static std::string MakeFolder() {
    std::string pattern = ::testing::TempDir() + "kiln_rooflines_XXXXXX";
    return mkdtemp(pattern.data());
  }
  static std::string CopyOf(int elements) {
    return absl::StrCat("buffer b0 float32[", elements, "] read\nbuffer b1 float32[", elements,
                        "] write\nstage r0:", elements, "\n  b1[r0] = b0[r0]\n");
  }
  static DeviceRates RatesOf(double launch_seconds) {
    DeviceRates rates;
    rates.launch_seconds = launch_seconds;
    return rates;
  }

  SettingStore store_{{.folder = MakeFolder(), .now = [] { return absl::Now(); }}};
  Rooflines rooflines_{store_};
  const std::string kernel_ = CopyOf(1000);
};

TEST_F(RooflinesTest, AreNotKnownBeforeTheHardwareIsMeasured) {
  EXPECT_EQ(rooflines_.Of({{"d", &kernel_, "box"}}), std::vector<Roofline>{Roofline()});
  EXPECT_EQ(rooflines_.remembered(), 0);
}

TEST_F(RooflinesTest, FollowFromTheRatesOfTheirHardware) {
  ASSERT_TRUE(store_.PutRates("box", RatesOf(0.5)).ok());
  const auto found = rooflines_.Of({{"d", &kernel_, "box"}, {"d", &kernel_, "other"}});
  EXPECT_EQ(found, (std::vector<Roofline>{RooflineOf(kernel_, RatesOf(0.5)), Roofline()}));
  EXPECT_EQ(found[0].limit, Limit::kLaunch);
  EXPECT_EQ(rooflines_.remembered(), 1);
}

// The text that is given the second time is not looked at.
TEST_F(RooflinesTest, AreRememberedUntilTheRatesChange) {
  const std::string no_kernel = "no kernel\n";
  ASSERT_TRUE(store_.PutRates("box", RatesOf(0.5)).ok());
  rooflines_.Of({{"d", &kernel_, "box"}});
  EXPECT_EQ(rooflines_.Of({{"d", &no_kernel, "box"}})[0].seconds, 0.5);
  ASSERT_TRUE(store_.PutRates("box", RatesOf(0.25)).ok());
  EXPECT_EQ(rooflines_.Of({{"d", &kernel_, "box"}})[0].seconds, 0.25);
  EXPECT_EQ(rooflines_.remembered(), 1);
}

TEST_F(RooflinesTest, AreForgottenIfThereAreTooMany) {
  ASSERT_TRUE(store_.PutRates("box", RatesOf(0.5)).ok());
  const std::string no_kernel = "no kernel\n";
  for (size_t i = 0; i < Rooflines::kRememberedMax; ++i)
    rooflines_.Of({{absl::StrCat(i), &no_kernel, "box"}});
  EXPECT_EQ(rooflines_.remembered(), Rooflines::kRememberedMax);
  EXPECT_EQ(rooflines_.Of({{"one more", &kernel_, "box"}})[0].seconds, 0.5);
  EXPECT_EQ(rooflines_.remembered(), 1);
}

}  // namespace
}  // namespace kiln::tuner
