#include "server/tuner/kernel_use.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/testing/fake_device.h"

namespace kiln::tuner {
namespace {

using ::testing::ElementsAre;

class KernelUseTest : public ::testing::Test {
 protected:
  KernelToTune Kernel(const std::string& text, const std::string& owner = "") {
    return {.name = text, .text = text + "\n", .device = &device_, .owner = owner};
  }
  std::vector<std::string> Unsearched() {
    std::vector<std::string> texts;
    for (const KernelUse::Used* used : use_.Unsearched(device_))
      texts.push_back(absl::StrCat(used->kernel.name, used->kernel.owner, " ", used->seconds));
    return texts;
  }

  metrics::Metrics metrics_{"test"};
  runtime::ManagedDevice device_{std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1000), 0,
                                 metrics_.ForDevice("cpu:0"), kiln::testing::StoppedClock()};
  runtime::ManagedDevice other_{std::make_unique<kiln::testing::FakeDevice>("cpu:1", 1000), 0,
                                metrics_.ForDevice("cpu:1"), kiln::testing::StoppedClock()};
  KernelUse use_;
};

TEST_F(KernelUseTest, AddsTheTimeOfAllPrograms) {
  use_.Add(Kernel("a"), "p", 1);
  use_.Add(Kernel("b"), "p", 2);
  use_.Add(Kernel("a"), "q", 3);
  use_.Add(Kernel("c"), "q", 0);
  EXPECT_THAT(Unsearched(), ElementsAre("a 4", "b 2"));
  EXPECT_EQ(use_.Unsearched(device_)[0]->program, "p");
  EXPECT_TRUE(use_.Unsearched(other_).empty());
}

TEST_F(KernelUseTest, LeavesOutWhatWasSearched) {
  use_.Add(Kernel("a"), "p", 4);
  use_.Add(Kernel("b"), "p", 2);
  use_.SetSearched(Kernel("a"));
  use_.SetSearched(Kernel("unknown"));
  use_.Add(Kernel("a"), "p", 4);
  EXPECT_THAT(Unsearched(), ElementsAre("b 2"));
}

TEST_F(KernelUseTest, SeparatesOwners) {
  use_.Add(Kernel("a", "ann"), "p", 4);
  use_.Add(Kernel("a", "bob"), "q", 2);
  use_.SetSearched(Kernel("a", "ann"));
  EXPECT_THAT(Unsearched(), ElementsAre("abob 2"));
}

TEST_F(KernelUseTest, ForgetsTheLeastUsed) {
  for (size_t i = 0; i <= KernelUse::kKernelsMax; ++i)
    use_.Add(Kernel(absl::StrCat("kernel", i)), "p", i == 500 ? 1 : 2);
  EXPECT_EQ(use_.size(), KernelUse::kKernelsMax);
  for (const KernelUse::Used* used : use_.Unsearched(device_)) EXPECT_EQ(used->seconds, 2);
}

TEST_F(KernelUseTest, BoundsItsTexts) {
  const std::string large(KernelUse::kTextBytesMax / 8, 'x');
  for (int i = 0; i < 20; ++i) use_.Add(Kernel(absl::StrCat(i, large)), "p", i + 1);
  EXPECT_LE(use_.text_bytes(), KernelUse::kTextBytesMax);
  ASSERT_FALSE(use_.Unsearched(device_).empty());
  EXPECT_EQ(use_.Unsearched(device_)[0]->seconds, 20);
  EXPECT_LT(use_.size(), 9);
}

}  // namespace
}  // namespace kiln::tuner
