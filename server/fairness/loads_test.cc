// Tests that users who ask for little get it promptly beside users who ask for everything: random
// loads, on devices that yield and on devices whose programs are cut. KILN_FAIR_LOADS: their
// number.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/fairness/testing/random.h"
#include "server/fairness/testing/simulator.h"

namespace kiln::fairness {
namespace {

// 10,000 take half a minute.
int LoadCount() {
  int count = 150;
  const char* const wanted = std::getenv("KILN_FAIR_LOADS");
  EXPECT_TRUE(wanted == nullptr || absl::SimpleAtoi(wanted, &count)) << wanted;
  return count;
}

// Heavy users, who always have work, and one who sometimes asks for less than a share.
class Load {
 public:
  static constexpr double kTaskSeconds = 0.0005;
  static constexpr double kSeconds = 5;

  Load(int seed, bool yields) : random_(seed), yields_(yields), simulator_(QueueLimits(), yields) {
    const int users = 1 + random_.Below(8);
    for (int user = 0; user < users; ++user) {
      heavy_.push_back(simulator_.flows().AddFlow(absl::StrCat("heavy", user), 1));
      simulator_.KeepBusy(heavy_.back(), Program(), /*deep=*/random_.Below(2) ? 0.5 : 0.05);
    }
    light_ = simulator_.flows().AddFlow("light", 1);
    // Runs until each heavy user has had some time; before that, all have had equally little.
    simulator_.RunUntil(0.5);
  }

  // The longest and the median time that requests wait for others.
  struct Waits {
    double longest = 0;
    double median = 0;
  };
  Waits Ask(int requests) {
    std::vector<double> waits;
    for (int request = 0; request < requests; ++request) {
      simulator_.RunUntil(simulator_.now() + random_.Between(0.02, 0.08));
      const double asked = simulator_.now();
      double answered = 0;
      constexpr double kRequest = 0.001;
      simulator_.Submit(light_, {{kRequest}}, [&] { answered = simulator_.now(); });
      simulator_.RunUntil(asked + 0.1);
      EXPECT_GT(answered, 0);
      waits.push_back(answered - asked - kRequest);
    }
    std::sort(waits.begin(), waits.end());
    return {waits.back(), waits[waits.size() / 2]};
  }

  // Jain's fairness index of the heavy users, who have equal weights.
  double JainsIndex() {
    simulator_.RunUntil(kSeconds);
    double sum = 0, squares = 0;
    for (const auto flow : heavy_) {
      sum += simulator_.Got(flow);
      squares += simulator_.Got(flow) * simulator_.Got(flow);
    }
    return sum * sum / (static_cast<double>(heavy_.size()) * squares);
  }
  double idle_seconds() const { return simulator_.idle_seconds(); }

 private:
  // A program of 1 to 200 ms, of one or many kernels.
  SimulatedProgram Program() {
    const double total = random_.Scale(0.001, 0.2);
    const int kernels = random_.Below(2) ? 1 : 1 + random_.Below(100);
    SimulatedProgram program{std::vector<double>(kernels, total / kernels)};
    program.points = std::max<int64_t>(1, std::ceil(total / kernels / kTaskSeconds));
    // Predictions may be wrong on a device that yields. Programs that have not run yet are alone
    // there.
    program.prediction = yields_ ? random_.Scale(0.5, 100) : random_.Scale(0.8, 1.25);
    return program;
  }

  Random random_;
  const bool yields_;
  Simulator simulator_;
  std::vector<FairQueue::FlowId> heavy_;
  FairQueue::FlowId light_ = 0;
};

class LoadsTest : public ::testing::TestWithParam<bool> {};

TEST_P(LoadsTest, WhoAsksForLittleRunsNextAndTheOthersShareEvenly) {
  const double slice = QueueLimits().slice_seconds;
  for (int seed = 0; seed < LoadCount(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Load load(seed, /*yields=*/GetParam());
    const auto waits = load.Ask(/*requests=*/20);
    ASSERT_LE(waits.longest, 2 * slice + Load::kTaskSeconds);
    ASSERT_LE(waits.median, slice);
    ASSERT_GE(load.JainsIndex(), 0.99);
    ASSERT_EQ(load.idle_seconds(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LoadsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "ThatYield" : "WithCuts"; });

}  // namespace
}  // namespace kiln::fairness
