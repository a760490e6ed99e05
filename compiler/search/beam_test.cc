// The search with measurers that know a time for each setting.
#include "compiler/search/beam.h"

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The heuristic's setting on the fixture's target has vectors=2, rows=5, unrolled_terms=4,
// staged_rows=-1.
constexpr char kMatmul[] = R"(buffer b0 float32[262144] read
buffer b1 float32[262144] read
buffer b2 float32[262144] write
stage r0:512 r1:512 reduce r2:512
  b2[r0*512 + r1] = sum(b0[r0*512 + r2]*b1[r2*512 + r1])
)";

using Times = std::function<absl::StatusOr<Timing>(const Setting&)>;

class FakeMeasurer : public Measurer {
 public:
  explicit FakeMeasurer(Times times) : times_(times), confirmed_times_(std::move(times)) {}
  FakeMeasurer(Times times, Times confirmed_times)
      : times_(std::move(times)), confirmed_times_(std::move(confirmed_times)) {}

  std::vector<absl::StatusOr<Timing>> Measure(const Measured* incumbent,
                                              absl::Span<const Candidate> candidates) override {
    EXPECT_EQ(incumbent == nullptr, schedules_.empty());
    batches_.push_back(candidates.size());
    std::vector<absl::StatusOr<Timing>> timings;
    for (const Candidate& candidate : candidates) {
      EXPECT_TRUE(schedules_.insert(schedule::Print(candidate.schedule)).second)
          << "measured twice";
      timings.push_back(times_(candidate.setting));
      now_ += absl::Milliseconds(1);
    }
    return timings;
  }

  absl::StatusOr<Timing> Confirm(const Measured& incumbent, const Candidate& candidate) override {
    EXPECT_TRUE(schedules_.contains(schedule::Print(candidate.schedule)));
    ++confirmations_;
    return confirmed_times_(candidate.setting);
  }

  absl::Time now() const { return now_; }
  int confirmations() const { return confirmations_; }
  const std::vector<size_t>& batches() const { return batches_; }

 private:
  Times times_;
  Times confirmed_times_;
  std::set<std::string> schedules_;
  std::vector<size_t> batches_;
  int confirmations_ = 0;
  absl::Time now_ = absl::UnixEpoch();
};

Timing Seconds(double seconds) { return {.seconds = seconds, .noise = 0.001}; }

class BeamTest : public testing::Test {
 protected:
  BeamTest() {
    target_.limits.vector_bytes = 32;
    target_.limits.compute_units = 2;
    kernel_ = *kernel::ParseKernel(kMatmul, context_);
    space_.emplace(kernel_, target_, Machine::kLanes);
  }

  SearchResult Find(FakeMeasurer& measurer, SearchOptions options = {}) {
    auto result = FindSetting(*space_, measurer, WithClock(measurer, std::move(options)));
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }
  SearchOptions WithClock(const FakeMeasurer& measurer, SearchOptions options) {
    options.now = [&measurer] { return measurer.now(); };
    return options;
  }

  ir::Context context_;
  drivers::Target target_;
  kernel::Kernel kernel_;
  std::optional<Space> space_;
};

// Returns whether the only stage is a panel with these values.
bool Has(const Setting& setting, std::vector<std::pair<Knob, int64_t>> wanted) {
  const Values& values = setting.parts.at(0);
  if (values.form() != Form::kPanel) return false;
  for (const auto& [knob, value] : wanted) {
    if (!values.Has(knob) || values[knob] != value) return false;
  }
  return true;
}

absl::StatusOr<Timing> NothingIsFaster(const Setting& setting) {
  return Seconds(Has(setting, {{Knob::kRows, 5}}) ? 1 : 1.2);
}

TEST_F(BeamTest, KeepsTheHeuristicsSettingIfNothingIsFaster) {
  FakeMeasurer measurer(NothingIsFaster);
  const SearchResult result = Find(measurer);
  EXPECT_EQ(result.best.candidate.setting, space_->heuristic());
  EXPECT_EQ(result.ending, Ending::kNoGain);
  EXPECT_EQ(result.progress.round, 2);
  EXPECT_EQ(result.progress.heuristic_seconds, 1);
  EXPECT_EQ(result.progress.best_seconds, 1);
  EXPECT_GT(result.progress.tried, 20);
  EXPECT_EQ(result.path.size(), static_cast<size_t>(result.progress.tried));
  EXPECT_EQ(measurer.confirmations(), 0);
}

// Each of two changes alone makes the kernel slower, less than others do.
TEST_F(BeamTest, FindsTwoKnobsThatOnlyHelpTogether) {
  FakeMeasurer measurer([this](const Setting& setting) {
    const bool rows = Has(setting, {{Knob::kRows, 4}});
    const bool staged = Has(setting, {{Knob::kStagedRows, 0}});
    const bool heuristic = setting == space_->heuristic();
    return Seconds(rows && staged ? 0.5 : heuristic ? 1 : rows || staged ? 1.1 : 1.3);
  });
  const SearchResult result = Find(measurer, {.width = 2});
  EXPECT_TRUE(Has(result.best.candidate.setting, {{Knob::kRows, 4}, {Knob::kStagedRows, 0}}))
      << Print(result.best.candidate.setting);
  EXPECT_EQ(result.best.timing.seconds, 0.5);
  EXPECT_EQ(schedule::Print(result.best.candidate.schedule),
            schedule::Print(*space_->Write(result.best.candidate.setting)));
}

// The largest gain of the first round leads nowhere. The path to the optimum begins with a smaller
// one.
absl::StatusOr<Timing> Trap(const Setting& setting) {
  if (Has(setting, {{Knob::kVectors, 1}})) {
    return Seconds(Has(setting, {{Knob::kRows, 5}}) ? 0.9 : 1);
  }
  if (Has(setting, {{Knob::kVectors, 2}, {Knob::kRows, 4}})) return Seconds(0.95);
  if (Has(setting, {{Knob::kVectors, 2}, {Knob::kRows, 3}})) return Seconds(0.5);
  return Seconds(1);
}

TEST_F(BeamTest, AWiderBeamEscapesALocalOptimum) {
  FakeMeasurer narrow(Trap);
  EXPECT_EQ(Find(narrow, {.width = 1, .rounds_without_gain = 1}).best.timing.seconds, 0.9);
  FakeMeasurer wide(Trap);
  const SearchResult result = Find(wide, {.width = 2, .rounds_without_gain = 1});
  EXPECT_EQ(result.best.timing.seconds, 0.5);
  EXPECT_GE(result.progress.round, 3);
  EXPECT_EQ(result.ending, Ending::kNoGain);
}

// The way to the optimum leads over a setting that is slower than the heuristic's.
TEST_F(BeamTest, MayGoOnAfterARoundWithoutAGain) {
  const auto hill = [this](const Setting& setting) {
    if (Has(setting, {{Knob::kRows, 3}})) return Seconds(0.5);
    if (setting == space_->heuristic()) return Seconds(1);
    return Seconds(Has(setting, {{Knob::kRows, 4}}) ? 1.05 : 2);
  };
  FakeMeasurer hasty(hill);
  EXPECT_EQ(Find(hasty, {.rounds_without_gain = 1}).best.timing.seconds, 1);
  FakeMeasurer patient(hill);
  EXPECT_EQ(Find(patient, {.rounds_without_gain = 2}).best.timing.seconds, 0.5);
}

TEST_F(BeamTest, TheSameMeasurementsGiveTheSamePath) {
  FakeMeasurer first(Trap);
  FakeMeasurer second(Trap);
  const SearchResult result = Find(first);
  EXPECT_EQ(PrintPath(result), PrintPath(Find(second)));
  EXPECT_THAT(PrintPath(result),
              HasSubstr("round 0: the heuristic's: 1e+06 us, the best so far\n"));
  EXPECT_THAT(PrintPath(result), HasSubstr("stage 0: rows 5 to 4: 950000 us\n"));
  EXPECT_THAT(PrintPath(result), HasSubstr("stage 0: rows 4 to 3: 500000 us, the best so far\n"));
  EXPECT_THAT(PrintPath(result), HasSubstr("stage 0: form panel to scalar: 1e+06 us\n"));
  EXPECT_THAT(PrintPath(result), HasSubstr("ended: no gain\n"));
}

TEST_F(BeamTest, ALuckyTimingIsNotConfirmed) {
  std::mt19937 random(1);
  FakeMeasurer measurer(
      [&random](const Setting&) {
        return Seconds(0.9 + 0.2 * static_cast<double>(random()) / std::mt19937::max());
      },
      [](const Setting&) { return Seconds(1.1); });
  const SearchResult result = Find(measurer);
  EXPECT_EQ(result.best.candidate.setting, space_->heuristic());
  EXPECT_GT(measurer.confirmations(), 0);
  EXPECT_EQ(result.ending, Ending::kNoGain);
}

TEST_F(BeamTest, AGainWithinTheNoiseIsNone) {
  FakeMeasurer measurer([](const Setting& setting) {
    return Timing{.seconds = Has(setting, {{Knob::kRows, 4}}) ? 0.97 : 1, .noise = 0.05};
  });
  EXPECT_EQ(Find(measurer).best.candidate.setting, space_->heuristic());
  EXPECT_EQ(measurer.confirmations(), 0);
}

TEST(BeamGain, IsMoreThanTheNoise) {
  EXPECT_TRUE(IsGain({0.9, 0.05}, 1, 0.01));
  EXPECT_FALSE(IsGain({0.9, 0.15}, 1, 0.01));
  EXPECT_FALSE(IsGain({0.9, 0.05}, 1, 0.15));
  EXPECT_TRUE(IsGain({1, 0}, std::numeric_limits<double>::infinity(), 0.01));
}

TEST_F(BeamTest, DoesNotChooseRefusedCandidates) {
  FakeMeasurer measurer([](const Setting& setting) -> absl::StatusOr<Timing> {
    if (Has(setting, {{Knob::kRows, 4}})) return absl::InternalError("it does not compile");
    return Seconds(1);
  });
  const SearchResult result = Find(measurer);
  EXPECT_EQ(result.best.candidate.setting, space_->heuristic());
  EXPECT_GT(result.progress.failed, 0);
  EXPECT_THAT(PrintPath(result), HasSubstr("rows 5 to 4: it does not compile\n"));
}

TEST_F(BeamTest, TheNextBestIsChosenIfResultsAreWrong) {
  auto times = [](const Setting& setting) {
    if (Has(setting, {{Knob::kRows, 4}})) return Seconds(0.5);
    return Seconds(Has(setting, {{Knob::kUnrolledTerms, 3}}) ? 0.8 : 1);
  };
  FakeMeasurer measurer(times, [times](const Setting& setting) -> absl::StatusOr<Timing> {
    if (Has(setting, {{Knob::kRows, 4}})) return absl::DataLossError("element 3 is 1 instead of 2");
    return times(setting);
  });
  const SearchResult result = Find(measurer);
  EXPECT_TRUE(Has(result.best.candidate.setting, {{Knob::kUnrolledTerms, 3}}));
  EXPECT_EQ(result.best.timing.seconds, 0.8);
  EXPECT_THAT(PrintPath(result), HasSubstr("rows 5 to 4: element 3 is 1 instead of 2\n"));
}

TEST_F(BeamTest, FailsIfTheHeuristicsSettingCannotBeMeasured) {
  FakeMeasurer measurer([](const Setting&) { return absl::UnavailableError("no device"); });
  const auto result = FindSetting(*space_, measurer, WithClock(measurer, {}));
  EXPECT_EQ(result.status(), absl::UnavailableError("no device"));
}

TEST_F(BeamTest, EndsAtTheBoundOfCandidates) {
  FakeMeasurer measurer(NothingIsFaster);
  const SearchResult result = Find(measurer, {.candidates_max = 10, .batch = 4});
  EXPECT_EQ(result.ending, Ending::kCandidates);
  EXPECT_EQ(result.progress.tried, 10);
  EXPECT_THAT(measurer.batches(), ElementsAre(1, 4, 4, 1));
}

TEST_F(BeamTest, EndsAtTheBoundOfSecondsWithTheGainsSoFar) {
  FakeMeasurer measurer([](const Setting& setting) {
    return Seconds(setting.parts.at(0).form() == Form::kPanel ? 1 : 0.7);
  });
  // Each measurement takes a millisecond.
  const SearchResult result = Find(measurer, {.seconds_max = 0.005, .batch = 4});
  EXPECT_EQ(result.ending, Ending::kSeconds);
  EXPECT_EQ(result.progress.tried, 5);
  EXPECT_EQ(result.best.timing.seconds, 0.7);
}

TEST_F(BeamTest, ABatchIsAsLargeAsTheTimeAllows) {
  FakeMeasurer measurer(NothingIsFaster);
  const SearchResult result = Find(measurer, {.seconds_max = 0.0105, .batch = 16});
  EXPECT_EQ(result.ending, Ending::kSeconds);
  EXPECT_THAT(measurer.batches(), ElementsAre(1, 4, 5, 1));
}

TEST_F(BeamTest, EndsIfTheRooflineIsReached) {
  FakeMeasurer at_once(NothingIsFaster);
  const SearchResult heuristic = Find(at_once, {.roofline_seconds = 0.995});
  EXPECT_EQ(heuristic.ending, Ending::kRoofline);
  EXPECT_EQ(heuristic.progress.tried, 1);
  FakeMeasurer later([](const Setting& setting) {
    return Seconds(Has(setting, {{Knob::kRows, 4}}) ? 0.5 : 1);
  });
  const SearchResult result = Find(later, {.roofline_seconds = 0.499});
  EXPECT_EQ(result.ending, Ending::kRoofline);
  EXPECT_EQ(result.progress.round, 1);
  EXPECT_EQ(result.best.timing.seconds, 0.5);
}

// FakeMeasurer fails the test if a schedule is measured twice.
TEST_F(BeamTest, CountsIllegalAndEqualSettings) {
  FakeMeasurer measurer(Trap);
  const SearchResult result = Find(measurer);
  EXPECT_GT(result.progress.rejected, 0);
  EXPECT_GT(result.progress.duplicates, 0);
}

TEST_F(BeamTest, DoesNotAskForWhatItsRehearsalRefuses) {
  FakeMeasurer measurer([](const Setting& setting) {
    const bool is_refused = Has(setting, {{Knob::kRows, 4}});
    EXPECT_FALSE(is_refused);
    return Seconds(is_refused ? 0.5 : 1);
  });
  Setting start = space_->heuristic();
  start.parts.at(0).Set(Knob::kRows, 4);
  int refused = 0;
  const SearchResult result =
      Find(measurer, {.starts = {start}, .rehearse = [&refused](const Setting& setting) {
                        if (!Has(setting, {{Knob::kRows, 4}})) return absl::OkStatus();
                        ++refused;
                        return absl::InvalidArgumentError("it is not legal");
                      }});
  EXPECT_GT(refused, 1);
  EXPECT_GE(result.progress.rejected, refused);
  EXPECT_GT(result.progress.tried, 1);
}

TEST_F(BeamTest, EndsIfTooManyRehearsalsAreLost) {
  FakeMeasurer measurer(NothingIsFaster);
  int lost = 0;
  const SearchResult result = Find(measurer, {.rehearse = [&lost](const Setting&) {
                                     ++lost;
                                     return absl::InternalError("two workers have ended");
                                   }});
  EXPECT_EQ(lost, kRehearsalsLostMax);
  EXPECT_EQ(result.ending, Ending::kRehearsals);
  EXPECT_EQ(result.best.candidate.setting, space_->heuristic());
  EXPECT_EQ(result.progress.tried, 1);
}

TEST_F(BeamTest, CombinesAnIllegalChangeWithOneThatMakesItLegal) {
  const auto fastest = [](const Setting& setting) {
    return Has(setting, {{Knob::kVectors, 1}, {Knob::kRows, 6}});
  };
  FakeMeasurer measurer(
      [&](const Setting& setting) { return Seconds(fastest(setting) ? 0.5 : 1); });
  Setting higher = space_->heuristic();
  higher.parts[0].Set(Knob::kRows, 6);
  ASSERT_EQ(space_->Write(higher).status().message(),
            "stage 0: the tile does not fit the registers");
  const SearchResult result = Find(measurer);
  EXPECT_TRUE(fastest(result.best.candidate.setting));
  EXPECT_THAT(PrintPath(result), HasSubstr("round 1: stage 0: vectors 2 to 1, rows 5 to 6: "));
}

TEST_F(BeamTest, AModelSkipsWhatItThinksSlow) {
  // Larger tiles are faster.
  const auto times = [](const Setting& setting) -> absl::StatusOr<Timing> {
    const Values& values = setting.parts.at(0);
    if (values.form() != Form::kPanel) return Seconds(5);
    const auto tile = static_cast<double>(values[Knob::kRows] * values[Knob::kVectors]);
    return Seconds(1 + 1 / tile);
  };
  FakeMeasurer without(times);
  const SearchResult first = Find(without);
  EXPECT_EQ(first.progress.skipped, 0);
  std::vector<CostSample> samples;
  const auto features_of = [&](const Setting& setting) {
    return *space_->FeaturesOf(*space_->Write(setting));
  };
  for (const SearchStep& step : first.path) {
    if (step.timing.ok())
      samples.push_back({features_of(space_->heuristic()), features_of(step.setting),
                         std::log(step.timing->seconds / first.path[0].timing->seconds)});
  }
  const CostModel model = CostModel::Fit(samples);
  FakeMeasurer with(times);
  const SearchResult second = Find(with, {.width = 8, .rounds_without_gain = 4, .model = &model});
  EXPECT_GT(second.progress.skipped, 0);
  EXPECT_LE(second.best.timing.seconds, first.best.timing.seconds);
  // The promising ones come first: the first batch has the best change of one knob.
  const auto best_of_first = [](const SearchResult& result) {
    double best = 5;
    for (const SearchStep& step : result.path)
      if (step.round == 1 && step.timing.ok()) best = std::min(best, step.timing->seconds);
    return best;
  };
  FakeMeasurer few(times), few_without(times);
  EXPECT_LE(best_of_first(Find(few, {.model = &model, .candidates_max = 4, .batch = 3})),
            best_of_first(Find(few_without, {.candidates_max = 4, .batch = 3})));
}

TEST_F(BeamTest, TriesTheStartsFirst) {
  Setting far = space_->heuristic();
  far.parts[0].Set(Knob::kRows, 2);
  far.parts[0].Set(Knob::kVectors, 4);
  far.parts[0].Set(Knob::kTerms, 64);
  far.parts[0].Set(Knob::kPartialSums, 7);  // a panel has no such knob
  FakeMeasurer measurer([](const Setting& setting) {
    const bool is_far = Has(setting, {{Knob::kRows, 2}, {Knob::kVectors, 4}, {Knob::kTerms, 64}});
    return Seconds(is_far ? 0.5 : 1);
  });
  const SearchResult result = Find(measurer, {.starts = {far}, .candidates_max = 2});
  EXPECT_EQ(result.best.timing.seconds, 0.5);
}

TEST_F(BeamTest, ReportsProgressAfterEveryBatch) {
  FakeMeasurer measurer(Trap);
  std::vector<SearchProgress> reports;
  const SearchResult result =
      Find(measurer, {.on_progress = [&](const SearchProgress& now) { reports.push_back(now); }});
  ASSERT_GE(reports.size(), measurer.batches().size());
  EXPECT_EQ(reports.front().round, 0);
  EXPECT_EQ(reports.front().tried, 1);
  for (size_t i = 1; i < reports.size(); ++i) {
    EXPECT_GE(reports[i].round, reports[i - 1].round);
    EXPECT_GE(reports[i].tried, reports[i - 1].tried);
    EXPECT_LE(reports[i].best_seconds, reports[i - 1].best_seconds);
    EXPECT_EQ(reports[i].heuristic_seconds, 1);
  }
  EXPECT_EQ(reports.back().tried, result.progress.tried);
  EXPECT_EQ(reports.back().best_seconds, 0.5);
}

TEST_F(BeamTest, StopsWhenCancelled) {
  bool cancelled = true;
  SearchOptions options;
  options.cancelled = [&] { return cancelled; };
  FakeMeasurer at_once(Trap);
  EXPECT_EQ(FindSetting(*space_, at_once, WithClock(at_once, options)).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_TRUE(at_once.batches().empty());

  cancelled = false;
  options.batch = 4;
  options.on_progress = [&](const SearchProgress& now) { cancelled = now.tried >= 5; };
  FakeMeasurer later(Trap);
  const SearchResult result = Find(later, options);
  EXPECT_EQ(result.ending, Ending::kCancelled);
  EXPECT_EQ(result.progress.tried, 5);
  EXPECT_EQ(later.confirmations(), 0);
  EXPECT_EQ(EndingName(result.ending), "cancelled");
}

}  // namespace
}  // namespace kiln::search
