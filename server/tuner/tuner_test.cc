// The tuner with runners that know how fast a kernel can become.
#include "server/tuner/tuner.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "compiler/compiler.h"
#include "compiler/graph/text.h"
#include "compiler/search/space.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/errors/errors.h"
#include "server/testing/fake_device.h"
#include "tests/eventually.h"

namespace kiln::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kHeuristicSeconds = 1e-3;

std::string CopyOf(int64_t elements) {
  return absl::StrCat("buffer b0 float32[", elements, "] read\nbuffer b1 float32[", elements,
                      "] write\nstage r0:", elements, "\n  b1[r0] = b0[r0] + b0[r0]\n");
}

struct World {
  std::set<std::string> improvable;  // kernels that have a schedule of half the time
  std::set<std::string> broken;      // kernels without a runner
  std::set<std::string> starved;     // kernels whose candidates find no memory
  double seconds = 0;                // of the clock
  double seconds_to_load = 0;
  std::set<std::string> loaded;  // schedules
  std::vector<std::string> searched;
};

// The first candidate is the heuristic's; all others are equally fast.
class WorldsRunner : public TrialRunner {
 public:
  WorldsRunner(World& world, const kernel::Kernel& kernel) : world_(world), kernel_(kernel) {}
  absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) override {
    world_.seconds += world_.seconds_to_load;
    world_.loaded.insert(image.code);
    if (heuristic_.empty()) heuristic_ = "code " + image.code;
    const bool is_other = "code " + image.code != heuristic_;
    // The plain schedule, which the heuristic's is compared with, comes before the candidates.
    if (is_other && ++others_ > 1 && world_.starved.contains(kernel_.name))
      return absl::UnavailableError("no memory");
    const bool is_better = is_other && world_.improvable.contains(kernel_.name);
    return std::make_unique<WorldsTrial>(kernel_, is_better ? 0.5 : 1);
  }
  // Several kernels are faster than one.
  absl::StatusOr<std::unique_ptr<Trial>> LoadSteps(absl::Span<const TrialStep> steps) override {
    return std::make_unique<WorldsTrial>(kernel_, 1.0 / static_cast<double>(steps.size()));
  }

 private:
  class WorldsTrial : public Trial {
   public:
    WorldsTrial(const kernel::Kernel& kernel, double share) : kernel_(kernel), share_(share) {}
    absl::StatusOr<double> Time(int, double) override { return share_ * kHeuristicSeconds; }
    absl::StatusOr<Outputs> Run(const Inputs&, double) override {
      Outputs outputs;
      for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
        const kernel::Buffer& buffer = kernel_.buffers[i];
        if (buffer.access == kernel::Access::kRead) continue;
        const auto bytes = static_cast<size_t>(buffer.elements) * sizeof(float);
        outputs[static_cast<int>(i)] = std::vector<char>(bytes);
      }
      return outputs;
    }

   private:
    const kernel::Kernel& kernel_;
    const double share_;
  };

  World& world_;
  const kernel::Kernel& kernel_;
  std::string heuristic_;
  int others_ = 0;  // schedules that were loaded
};

// Executes nothing, as the null driver's devices do.
class DeviceOfNothing : public kiln::testing::FakeDevice {
 public:
  DeviceOfNothing() : FakeDevice("null:0", 1000), info_(FakeDevice::info()) {
    info_.target.architecture = "null";
  }
  const drivers::DeviceInfo& info() const override { return info_; }

 private:
  drivers::DeviceInfo info_;
};

class TunerTest : public ::testing::Test {
 protected:
  TunerTest() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/kiln_tuner_XXXXXX");
    folder_ = mkdtemp(pattern.data());
    Start();
  }
  // The parts of a daemon that begin anew when it is restarted.
  void Start() {
    tuner_.reset();
    store_ = std::make_unique<SettingStore>(
        SettingStore::Options{.folder = folder_, .now = clock_.wall});
    samples_ =
        std::make_unique<CostSamples>(CostSamples::Options{.folder = folder_, .now = clock_.wall});
    tuner_ = std::make_unique<Tuner>(
        Tuner::Options{.store = store_.get(),
                       .compile =
                           [this](const workers::KernelJob& job) {
                             drivers::KernelImage image;
                             if (job.rehearsal) return absl::StatusOr<drivers::KernelImage>(image);
                             ++compiled_;
                             image.code = job.schedule;
                             return absl::StatusOr<drivers::KernelImage>(image);
                           },
                       .compile_program =
                           [](const graph::Graph& graph, const drivers::Target& target,
                              const compiler::Options& options) {
                             return compiler::Compile(graph, Compilable(target), options);
                           },
                       .make_runner = [this](const kernel::Kernel& kernel, runtime::ManagedDevice&)
                           -> absl::StatusOr<std::unique_ptr<TrialRunner>> {
                         world_.searched.push_back(kernel.name);
                         if (runners_ == 0 && on_first_runner_) on_first_runner_();
                         ++runners_;
                         if (world_.broken.contains(kernel.name))
                           return absl::InternalError("no runner");
                         return std::make_unique<WorldsRunner>(world_, kernel);
                       },
                       .metrics = &metrics_,
                       .clock = clock_,
                       .samples = samples_.get(),
                       .on_changed = [this] { ++changes_; }});
  }
  // The fake device's architecture has no code generator.
  static drivers::Target Compilable(drivers::Target target) {
    target.architecture = "x86-64";
    return target;
  }
  ~TunerTest() override {
    tuner_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  // By share: b, a, c.
  std::vector<KernelToTune> Kernels() {
    return {{"a", CopyOf(64), &device_, 2e-3, 1},
            {"b", CopyOf(128), &device_, 1e-3, 5},
            {"c", CopyOf(256), &device_, 1e-3, 1}};
  }
  absl::StatusOr<TuneSummary> Tune(TuneOptions options = {}) {
    ended_.clear();
    first_fraction_ = last_fraction_ = -1;
    const auto then = options.on_progress;
    options.on_progress = [this, then](const TuneProgress& progress) {
      if (first_fraction_ < 0) first_fraction_ = progress.fraction_done;
      EXPECT_GE(progress.fraction_done, last_fraction_);
      last_fraction_ = progress.fraction_done;
      if (progress.state != TuneState::kSearching)
        ended_.push_back(
            absl::StrCat(progress.kernel, " ", std::string(TuneStateName(progress.state)).c_str()));
      shares_[progress.kernel] = progress.share;
      if (then) then(progress);
    };
    return tuner_->Tune(Kernels(), "step", options);
  }
  static TuningInfo Asked(const std::string& program, const std::string& user = "ann") {
    return {.program = program, .user = user, .control = std::make_shared<TuningControl>()};
  }
  static TuningInfo Idle(const std::string& program) {
    return {
        .program = program, .origin = Origin::kIdle, .control = std::make_shared<TuningControl>()};
  }
  std::optional<TunedSetting> StoredOf(int64_t elements) {
    return store_->Find(CopyOf(elements), device_.info().target.HardwareKey());
  }

  World world_;
  Clock clock_ =
      kiln::testing::ClockOf([this] { return absl::UnixEpoch() + absl::Seconds(world_.seconds); });
  std::string folder_;
  metrics::Metrics metrics_{"test"};
  runtime::ManagedDevice device_{std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1000), 0,
                                 metrics_.ForDevice("cpu:0"), clock_};
  runtime::ManagedDevice other_{std::make_unique<kiln::testing::FakeDevice>("cpu:1", 1000), 0,
                                metrics_.ForDevice("cpu:1"), clock_};
  std::unique_ptr<SettingStore> store_;
  std::unique_ptr<CostSamples> samples_;
  std::unique_ptr<Tuner> tuner_;
  std::atomic<int> runners_{0};   // made
  std::atomic<int> compiled_{0};  // candidates
  std::function<void()> on_first_runner_;
  int changes_ = 0;
  std::vector<std::string> ended_;
  std::map<std::string, double> shares_;
  double first_fraction_ = -1;
  double last_fraction_ = -1;
};

TEST_F(TunerTest, SearchesTheLargestShareFirstAndStoresEachResult) {
  world_.improvable = {"a"};
  const auto summary = Tune();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(ended_, ElementsAre("b kept", "a faster", "c kept"));
  EXPECT_EQ(summary->faster, 1);
  EXPECT_EQ(summary->kept, 2);
  EXPECT_DOUBLE_EQ(shares_["b"], 0.625);
  EXPECT_DOUBLE_EQ(shares_["a"], 0.25);
  EXPECT_EQ(last_fraction_, 1);
  EXPECT_EQ(changes_, 1);
  const auto a = StoredOf(64), b = StoredOf(128);
  ASSERT_TRUE(a && b);
  EXPECT_DOUBLE_EQ(a->seconds_before, kHeuristicSeconds);
  EXPECT_DOUBLE_EQ(a->seconds_after, kHeuristicSeconds / 2);
  EXPECT_EQ(a->width, 4);
  EXPECT_EQ(b->setting, "");
  EXPECT_EQ(b->width, 4);
  // The compiler can use what is stored.
  ir::Context context;
  const auto kernel = kernel::ParseKernel(CopyOf(64), context);
  std::vector<std::string> ignored;
  const auto& target = device_.info().target;
  const auto schedule =
      search::WriteStored(*kernel, target, search::MachineOf(target), a->setting, &ignored);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(ignored, ElementsAre());
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("kiln_tune_kernels_total{origin=\"asked\",outcome=\"faster\"} 1"));
  EXPECT_THAT(text, HasSubstr("kiln_tune_kernels_total{origin=\"asked\",outcome=\"kept\"} 2"));
}

// A sum over rows that a row's reader follows: two values that share a kernel.
constexpr char kRows[] = R"(input 0 float32[64,512]
input 1 float32[64,512]
%0 = input float32[64,512] index=0
%1 = input float32[64,512] index=1
%2 = mul float32[64,512] %0 %1
%3 = reduce_sum float32[64,1] %2 axes=[1]
output %2
output %3
)";

TEST_F(TunerTest, SearchesForChoicesBeforeTheirKernels) {
  const drivers::Target target = Compilable(device_.info().target);
  std::string key;
  compiler::Options options;
  options.choices = [&key](const std::string& graph, const drivers::Target&) {
    key = graph;
    return std::optional<std::string>();
  };
  const auto program = compiler::Compile(*graph::Parse(kRows), target, options);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->kernels.size(), 1u);
  const GraphToTune graph{.graph = program->graph_text, .key = key, .device = &device_};
  const TuneOptions of_graph{.graph = std::make_shared<const GraphToTune>(graph)};
  const auto summary = Tune(of_graph);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(ended_, ElementsAre("apart %3 reduce_sum float32[64,1] faster", HasSubstr(" kept"),
                                  HasSubstr(" kept")));
  EXPECT_EQ(summary->kept, 2);  // kernels
  EXPECT_EQ(changes_, 1);
  const auto stored = store_->Find(key, device_.info().target.HardwareKey());
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->setting, "choices 1\napart %3\n");
  EXPECT_EQ(stored->width, 4);
  EXPECT_GT(stored->seconds_before, stored->seconds_after);
  // The compiler uses stored choices, which are not searched again.
  options.choices = [this](const std::string& graph, const drivers::Target&) {
    return store_->SettingFor(graph, device_.info().target);
  };
  const auto chosen = compiler::Compile(*graph::Parse(kRows), target, options);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->kernels.size(), 2u);
  EXPECT_EQ(chosen->choices.at(0).refusal, "");
  // A program of before has other kernels, which it will not have when it is next defined.
  ASSERT_TRUE(Tune(of_graph).ok());
  EXPECT_THAT(ended_, ElementsAre(HasSubstr(" searched before"), HasSubstr(" searched before")));
}

TEST_F(TunerTest, TheProgramsOfASearchAreChargedToItsUser) {
  const auto program =
      compiler::Compile(*graph::Parse(kRows), Compilable(device_.info().target), {});
  ASSERT_TRUE(program.ok()) << program.status();
  std::string key;
  compiler::Options options;
  options.choices = [&key](const std::string& graph, const drivers::Target&) {
    key = graph;
    return std::optional<std::string>();
  };
  ASSERT_TRUE(
      compiler::Compile(*graph::Parse(kRows), Compilable(device_.info().target), options).ok());
  const auto graph = std::make_shared<const GraphToTune>(
      GraphToTune{.graph = program->graph_text, .key = key, .device = &device_});
  const auto host = std::make_shared<memory::HostMemory>(int64_t{1} << 30, 10);
  const auto user = host->NewUserAccount("ann");
  int64_t programs_bytes = 0;
  ASSERT_TRUE(Tune({.host = user,
                    .on_progress =
                        [&](const TuneProgress& progress) {
                          if (progress.is_site)
                            programs_bytes = host->used_bytes(memory::Use::kPrograms);
                        },
                    .graph = graph})
                  .ok());
  EXPECT_GE(programs_bytes, 3 * runtime::HostBytes(*program));
  EXPECT_EQ(host->used_bytes(), 0);
  // Beyond the user's limit there is no search of choices. Kernels need less.
  user->SetLimit(2 * runtime::HostBytes(*program));
  ASSERT_TRUE(Tune({.force = true, .host = user, .graph = graph}).ok());
  EXPECT_EQ(ended_.size(), 3u);
  EXPECT_EQ(host->used_bytes(), 0);
}

TEST_F(TunerTest, AGraphThatCannotBeSearchedDoesNotEndTheTuning) {
  const GraphToTune graph{.graph = "no graph", .key = "graph 0\n", .device = &device_};
  const auto summary = Tune({.graph = std::make_shared<const GraphToTune>(graph)});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->kept, 3);
  EXPECT_FALSE(store_->Find(graph.key, device_.info().target.HardwareKey()));
}

TEST_F(TunerTest, SkipsWhatWasSearchedAsWidelyUnlessForced) {
  world_.improvable = {"a"};
  ASSERT_TRUE(Tune({.width = 2}).ok());
  world_.searched.clear();
  ASSERT_TRUE(Tune({.width = 1}).ok());
  EXPECT_THAT(ended_, ElementsAre("b searched before", "a searched before", "c searched before"));
  EXPECT_THAT(world_.searched, ElementsAre());
  EXPECT_EQ(changes_, 1);
  ASSERT_TRUE(Tune({.width = 3}).ok());
  EXPECT_THAT(world_.searched, ElementsAre("b", "a", "c"));
  // Its setting was the search's start, and nothing is faster.
  EXPECT_THAT(ended_, ElementsAre("b kept", "a kept", "c kept"));
  EXPECT_DOUBLE_EQ(StoredOf(64)->seconds_after, kHeuristicSeconds / 2);
  EXPECT_EQ(StoredOf(64)->width, 3);
  ASSERT_TRUE(Tune({.width = 3, .force = true}).ok());
  EXPECT_THAT(world_.searched, ElementsAre("b", "a", "c", "b", "a", "c"));
}

TEST_F(TunerTest, ARestartSearchesNothingAnew) {
  world_.improvable = {"a"};
  ASSERT_TRUE(Tune().ok());
  const auto found = StoredOf(64);
  world_.searched.clear();
  Start();
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(ended_, ElementsAre("b searched before", "a searched before", "c searched before"));
  EXPECT_THAT(world_.searched, ElementsAre());
  EXPECT_EQ(StoredOf(64), found);
}

TEST_F(TunerTest, ASearchWithoutTimeIsNotComplete) {
  world_.improvable = {"b"};
  world_.seconds_to_load = 1;
  auto summary = Tune({.seconds = 5});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(ended_, ElementsAre("b faster", "a no time left", "c no time left"));
  EXPECT_EQ(summary->skipped, 2);
  EXPECT_EQ(StoredOf(128)->width, 0);
  EXPECT_FALSE(StoredOf(64));
  const std::string found = StoredOf(128)->setting;
  // Without time for its stored setting, a search changes nothing.
  ASSERT_TRUE(Tune({.seconds = 1}).ok());
  EXPECT_THAT(ended_, ElementsAre("b kept", "a no time left", "c no time left"));
  EXPECT_EQ(StoredOf(128)->setting, found);
  world_.seconds_to_load = 0;
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(ended_, ElementsAre("b kept", "a kept", "c kept"));
  EXPECT_EQ(StoredOf(128)->width, 4);
}

TEST_F(TunerTest, ACancelledTuningKeepsTheKernelsThatItHasFinished) {
  world_.improvable = {"a", "b"};
  const auto control = std::make_shared<TuningControl>();
  const auto summary = Tune({.on_progress =
                                 [&](const TuneProgress& progress) {
                                   if (progress.kernel == "a") control->Cancel();
                                 },
                             .control = control});
  EXPECT_TRUE(absl::IsCancelled(summary.status())) << summary.status();
  EXPECT_THAT(world_.searched, ElementsAre("b", "a"));
  EXPECT_NE(StoredOf(128)->setting, "");
  // Its heuristic's time was all that was known.
  EXPECT_EQ(StoredOf(64)->setting, "");
  EXPECT_EQ(StoredOf(64)->width, 0);
  EXPECT_EQ(changes_, 1);
}

TEST_F(TunerTest, AKernelThatFailsDoesNotEndTheOthers) {
  world_.broken = {"b"};
  auto summary = Tune();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(ended_, ElementsAre("b failed", "a kept", "c kept"));
  EXPECT_EQ(summary->failed, 1);
  world_.broken = {"a", "b", "c"};
  summary = Tune({.force = true});
  EXPECT_EQ(summary.status().message(), "no runner");
}

TEST_F(TunerTest, KernelsOfAProgramThatHasNotRunAreSortedBySize) {
  std::vector<KernelToTune> kernels = Kernels();
  for (KernelToTune& kernel : kernels) kernel.seconds = 0;
  ASSERT_TRUE(tuner_->Tune(kernels, "step", {}).ok());
  EXPECT_THAT(world_.searched, ElementsAre("b", "c", "a"));
}

TEST_F(TunerTest, ANewKernelStartsFromTheSettingOfTheMostSimilarOne) {
  const drivers::Target& target = device_.info().target;
  const auto store = [&](int64_t elements, const std::string& setting) {
    const TunedSetting tuned{.kernel = CopyOf(elements),
                             .hardware = target.HardwareKey(),
                             .setting = setting,
                             .seconds_before = 2,
                             .seconds_after = 1};
    ASSERT_TRUE(store_->Put(tuned).ok());
  };
  // The schedules that a search of the copy would try by itself do not have so many tasks.
  const std::string near = "setting 1\nstage 0 form=point_lanes lanes=4 tasks=13\n";
  store(4096, near);
  store(64 << 20, "setting 1\nstage 0 form=point_lanes lanes=4 tasks=11\n");
  ir::Context context;
  const auto kernel = kernel::ParseKernel(CopyOf(1024), context);
  std::vector<std::string> ignored;
  const auto schedule =
      search::WriteStored(*kernel, target, search::MachineOf(target), near, &ignored);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::vector<KernelToTune> kernels = {{"d", CopyOf(1024), &device_, 1e-3, 1}};
  ASSERT_TRUE(tuner_->Tune(kernels, "step", {}).ok());
  EXPECT_TRUE(world_.loaded.contains(schedule::Print(*schedule)));
}

TEST_F(TunerTest, AStartThatIsNotLegalIsLeftOut) {
  const drivers::Target& target = device_.info().target;
  const std::string wide = "setting 1\nstage 0 form=point_lanes lanes=1024\n";
  ASSERT_TRUE(store_
                  ->Put({.kernel = CopyOf(4096),
                         .hardware = target.HardwareKey(),
                         .setting = wide,
                         .seconds_before = 2,
                         .seconds_after = 1})
                  .ok());
  ir::Context context;
  const auto kernel = kernel::ParseKernel(CopyOf(64), context);
  std::vector<std::string> ignored;
  EXPECT_FALSE(
      search::WriteStored(*kernel, target, search::MachineOf(target), wide, &ignored).ok());
  world_.improvable = {"a"};
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(ended_, ElementsAre("b kept", "a faster", "c kept"));
}

TEST_F(TunerTest, EverySearchAddsToTheSamples) {
  const std::string hardware = device_.info().target.HardwareKey();
  std::vector<KernelToTune> kernels;
  for (int i = 0; i < CostSamples::kKernelsMin; ++i)
    kernels.push_back({absl::StrCat("k", i), CopyOf(1024 << i), &device_, 1e-3, 1});
  EXPECT_EQ(samples_->ModelOf(hardware), nullptr);
  ASSERT_TRUE(tuner_->Tune(kernels, "step", {}).ok());
  EXPECT_NE(samples_->ModelOf(hardware), nullptr);
  // A search with a model.
  world_.improvable = {"a", "b", "c"};
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(ended_, ElementsAre("b faster", "a faster", "c faster"));
}

TEST_F(TunerTest, ASearchEndsAtTheRoofline) {
  world_.improvable = {"a", "b", "c"};
  const std::string hardware = device_.info().target.HardwareKey();
  ASSERT_TRUE(store_->PutRates(hardware, {.launch_seconds = 0.98 * kHeuristicSeconds}).ok());
  std::vector<TuneProgress> ended;
  ASSERT_TRUE(Tune({.on_progress = [&](const TuneProgress& progress) {
                if (progress.state != TuneState::kSearching) ended.push_back(progress);
              }}).ok());
  ASSERT_EQ(ended.size(), size_t{3});
  for (const TuneProgress& progress : ended) {
    EXPECT_EQ(progress.state, TuneState::kKept);
    EXPECT_EQ(progress.tried, 1);
    EXPECT_EQ(progress.roofline, (Roofline{0.98 * kHeuristicSeconds, Limit::kLaunch}));
  }
  EXPECT_DOUBLE_EQ(StoredOf(64)->roofline_seconds, 0.98 * kHeuristicSeconds);
}

TEST_F(TunerTest, ARooflineThatAKernelBeatsDoesNotEndItsSearch) {
  world_.improvable = {"a"};
  const std::string hardware = device_.info().target.HardwareKey();
  ASSERT_TRUE(store_->PutRates(hardware, {.launch_seconds = 2 * kHeuristicSeconds}).ok());
  std::vector<TuneProgress> ended;
  ASSERT_TRUE(Tune({.on_progress = [&](const TuneProgress& progress) {
                if (progress.state != TuneState::kSearching) ended.push_back(progress);
              }}).ok());
  EXPECT_THAT(ended_, ElementsAre("b kept", "a faster", "c kept"));
  for (const TuneProgress& progress : ended) EXPECT_EQ(progress.roofline, Roofline());
  EXPECT_DOUBLE_EQ(StoredOf(64)->roofline_seconds, 0);
}

TEST_F(TunerTest, OwnersHaveTheirOwnSettingsAndTheDevicesRates) {
  const std::string hardware = device_.info().target.HardwareKey();
  ASSERT_TRUE(store_->PutRates(hardware, {.launch_seconds = 0.98 * kHeuristicSeconds}).ok());
  KernelToTune kernel{"a", CopyOf(64), &device_, 1e-3, 1};
  kernel.owner = "ann";
  ASSERT_TRUE(tuner_->Tune({kernel}, "step", {}).ok());
  EXPECT_FALSE(StoredOf(64));
  const auto found = store_->Find(CopyOf(64), hardware, "ann");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->hardware, StoredHardware(hardware, "ann"));
  EXPECT_DOUBLE_EQ(found->roofline_seconds, 0.98 * kHeuristicSeconds);
  kernel.owner = "bob";
  ASSERT_TRUE(tuner_->Tune({kernel}, "step", {}).ok());
  EXPECT_THAT(world_.searched, ElementsAre("a", "a"));
}

TEST_F(TunerTest, ASearchThatLackedMemoryIsNotComplete) {
  world_.improvable = {"a"};
  world_.starved = {"a"};
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(ended_, ElementsAre("b kept", "a kept", "c kept"));
  EXPECT_EQ(StoredOf(64)->width, 0);
  world_.starved.clear();
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(ended_, ElementsAre("b searched before", "a faster", "c searched before"));
  EXPECT_EQ(StoredOf(64)->width, 4);
}

TEST_F(TunerTest, OneProgramIsTunedOnADeviceAtATime) {
  auto first = tuner_->Begin({&device_}, Asked("abc"));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = tuner_->Begin({&other_, &device_}, Asked("def"));
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_EQ(errors::Reason(second.status()), "ALREADY_TUNING");
  EXPECT_THAT(second.status().message(), HasSubstr("cpu:0 is already tuning the program abc"));
  EXPECT_TRUE(tuner_->Begin({&other_}, Asked("def")).ok());
  first->reset();
  EXPECT_TRUE(tuner_->Begin({&other_, &device_}, Asked("def")).ok());
}

// Its client may begin another one before it has noticed.
TEST_F(TunerTest, ATuningThatWasCancelledIsInNobodysWay) {
  const TuningInfo cancelled = Asked("abc");
  auto first = tuner_->Begin({&device_}, cancelled);
  ASSERT_TRUE(first.ok()) << first.status();
  cancelled.control->Cancel();
  auto second = tuner_->Begin({&device_}, Asked("def"));
  ASSERT_TRUE(second.ok()) << second.status();
  first->reset();
  EXPECT_EQ(errors::Reason(tuner_->Begin({&device_}, Asked("ghi")).status()), "ALREADY_TUNING");
}

TEST_F(TunerTest, AnotherUsersProgramIsNotNamed) {
  TuningInfo anns = Asked("abc"), bobs = Asked("def");
  anns.user = "ann";
  bobs.user = "bob";
  const auto first = tuner_->Begin({&device_}, anns);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(tuner_->Begin({&device_}, bobs).status().message(),
              HasSubstr("cpu:0 is already tuning a program of another user"));
}

TEST_F(TunerTest, WhatAUserAsksForGoesBeforeWhatTheDaemonDoes) {
  const TuningInfo idle = Idle("abc");
  auto first = tuner_->Begin({&device_}, idle);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(tuner_->IsAsked(device_));
  EXPECT_EQ(errors::Reason(tuner_->Begin({&device_}, Idle("def")).status()), "ALREADY_TUNING");
  const auto asked = tuner_->Begin({&device_}, Asked("def"));
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(idle.control->status().message(), "a user's tuning goes first");
  EXPECT_TRUE(tuner_->IsAsked(device_));
  EXPECT_FALSE(tuner_->IsAsked(other_));
  ASSERT_EQ(tuner_->List().size(), 1);
  EXPECT_EQ(tuner_->List()[0].info.program, "def");
  // Its end does not end the other's claim.
  first->reset();
  EXPECT_EQ(errors::Reason(tuner_->Begin({&device_}, Idle("abc")).status()), "ALREADY_TUNING");
}

TEST_F(TunerTest, ListsAndCancelsWhatRuns) {
  world_.seconds = 100;
  const TuningInfo anns = Asked("abc"), idle = Idle("def");
  auto first = tuner_->Begin({&device_}, anns);
  auto second = tuner_->Begin({&other_}, idle);
  ASSERT_TRUE(first.ok() && second.ok());
  (*second)->Report({.kernel = "matmul", .number = 1, .kernels = 2, .tried = 3});
  const std::vector<ListedTuning> list = tuner_->List();
  ASSERT_EQ(list.size(), 2);
  EXPECT_EQ(list[0].info.user, "ann");
  EXPECT_EQ(list[0].since, absl::UnixEpoch() + absl::Seconds(100));
  EXPECT_THAT(list[0].devices, ElementsAre("cpu:0"));
  EXPECT_EQ(list[0].progress.kernel, "");
  EXPECT_EQ(list[1].info.origin, Origin::kIdle);
  EXPECT_EQ(list[1].progress.tried, 3);
  EXPECT_EQ(errors::Reason(tuner_->Cancel(list[0].id, "bob", "stopped").status()),
            "UNKNOWN_TUNING");
  EXPECT_EQ(errors::Reason(tuner_->Cancel(7, "", "stopped").status()), "UNKNOWN_TUNING");
  EXPECT_FALSE(anns.control->is_cancelled());
  EXPECT_EQ(tuner_->Cancel(list[0].id, "ann", "stopped")->program, "abc");
  EXPECT_EQ(anns.control->status(), absl::CancelledError("stopped"));
  EXPECT_EQ(tuner_->Cancel(list[1].id, "", "stopped")->program, "def");
  EXPECT_TRUE(idle.control->is_cancelled());
  first->reset();
  EXPECT_EQ(tuner_->List().size(), 1);
}

TEST_F(TunerTest, PausesTakeNoneOfItsTime) {
  world_.improvable = {"b"};
  const auto control = std::make_shared<TuningControl>();
  int paused = 0;
  const auto summary = Tune({.seconds = 5,
                             .on_progress =
                                 [&](const TuneProgress&) {
                                   control->Pause(clock_.steady());
                                   world_.seconds += 1000;
                                   control->Resume(clock_.steady());
                                   ++paused;
                                 },
                             .control = control});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(ended_, ElementsAre("b faster", "a kept", "c kept"));
  EXPECT_GT(paused, 3);
  EXPECT_EQ(StoredOf(128)->width, 4);
}

TEST_F(TunerTest, APausedTuningCompilesNothingUntilItIsResumed) {
  const auto control = std::make_shared<TuningControl>();
  on_first_runner_ = [&] { control->Pause(clock_.steady()); };
  absl::Notification ended;
  std::thread tuning([&] {
    EXPECT_TRUE(Tune({.control = control}).ok());
    ended.Notify();
  });
  EXPECT_TRUE(kiln::testing::Eventually([&] { return runners_ > 0; }));
  EXPECT_FALSE(ended.HasBeenNotified());
  EXPECT_EQ(compiled_, 0);
  control->Resume(clock_.steady());
  tuning.join();
  EXPECT_GT(compiled_, 0);
}

TEST_F(TunerTest, APausedTuningCanBeCancelled) {
  const auto control = std::make_shared<TuningControl>();
  control->Pause(clock_.steady());
  std::thread tuning(
      [&] { EXPECT_EQ(Tune({.control = control}).status(), absl::CancelledError("enough")); });
  control->Cancel(absl::CancelledError("enough"));
  tuning.join();
  EXPECT_EQ(compiled_, 0);
}

TEST_F(TunerTest, DevicesThatComputeNothingOrDrainAreRefused) {
  runtime::ManagedDevice nothing(std::make_unique<DeviceOfNothing>(), 0,
                                 metrics_.ForDevice("null:0"), clock_);
  const auto refused = tuner_->Begin({&nothing}, Asked("p"));
  EXPECT_EQ(errors::Reason(refused.status()), "CANNOT_TUNE");
  other_.SetDraining(true);
  EXPECT_TRUE(absl::IsUnavailable(tuner_->Begin({&other_}, Asked("p")).status()));
}

TEST_F(TunerTest, AStoppedTunerBeginsNothing) {
  tuner_->Stop();
  EXPECT_EQ(errors::Reason(tuner_->Begin({&device_}, Asked("p")).status()), "TUNING_STOPPED");
  EXPECT_TRUE(absl::IsUnavailable(Tune().status()));
  EXPECT_THAT(world_.searched, ElementsAre());
}

}  // namespace
}  // namespace kiln::tuner
