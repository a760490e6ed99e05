// The daemon's own searches, with a clock that only the test advances and candidates that the test
// holds.
#include "server/tuner/idle_tuner.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/testing/fake_device.h"
#include "tests/eventually.h"

namespace kiln::tuner {
namespace {

using kiln::testing::Eventually;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kUsersQuiet = absl::Seconds(60);

std::string SumOf(int64_t elements) {
  return absl::StrCat("buffer b0 float32[", elements, "] read\nbuffer b1 float32[", elements,
                      "] write\nstage r0:", elements, "\n  b1[r0] = b0[r0] + b0[r0]\n");
}

// Records and holds the runners of all searches. Thread-safe.
class Script {
 public:
  void Add(const std::string& event) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(event);
  }
  std::vector<std::string> events() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return events_;
  }
  // A search that was stopped may have ended before it loaded anything.
  void Begin(const std::string& event) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    is_stopped_ = false;
    events_.push_back(event);
  }
  // Loading waits while it is held, paused or not, until it is stopped.
  void Hold(bool held) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    is_held_ = held;
  }
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    is_stopped_ = true;
  }
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &Script::GoesOn));
    return std::exchange(is_stopped_, false) ? absl::CancelledError("stopped") : absl::OkStatus();
  }

 private:
  bool GoesOn() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_held_ || is_stopped_; }

  absl::Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// Every schedule but the first one takes half the time.
class ScriptRunner : public TrialRunner {
 public:
  // Holds a part of the pool's memory.
  ScriptRunner(Script& script, const kernel::Kernel& kernel, buffers::Pool& pool)
      : script_(script), kernel_(kernel) {
    memory_ = *pool.Reserve(64, std::make_shared<buffers::Account>(), [this] { return Yield(); });
    script_.Begin("search " + kernel.name);
  }
  void SetOnYield(std::function<void()> on_yield) override {
    absl::MutexLock lock(&mutex_);
    on_yield_ = std::move(on_yield);
  }
  void Stop(const absl::Status&) override { script_.Stop(); }
  void Pause() override { script_.Add("pause"); }
  void Resume() override { script_.Add("resume"); }
  absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) override {
    if (absl::Status status = script_.Wait(); !status.ok()) return status;
    if (heuristic_.empty()) heuristic_ = "code " + image.code;
    return std::make_unique<ScriptTrial>(kernel_, "code " + image.code == heuristic_ ? 1 : 0.5);
  }

 private:
  class ScriptTrial : public Trial {
   public:
    ScriptTrial(const kernel::Kernel& kernel, double seconds)
        : kernel_(kernel), seconds_(seconds) {}
    absl::StatusOr<double> Time(int, double) override { return seconds_; }
    absl::StatusOr<Outputs> Run(const Inputs&, double) override {
      const auto bytes = static_cast<size_t>(kernel_.buffers[1].elements) * sizeof(float);
      return Outputs{{1, std::vector<char>(bytes)}};
    }

   private:
    const kernel::Kernel& kernel_;
    const double seconds_;
  };

  bool Yield() {
    absl::MutexLock lock(&mutex_);
    if (on_yield_ == nullptr) return false;
    on_yield_();
    return true;
  }

  Script& script_;
  const kernel::Kernel& kernel_;
  std::string heuristic_;
  absl::Mutex mutex_;
  std::function<void()> on_yield_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<buffers::Pool::Reservation> memory_;  // first to go
};

// Stays on the device until the test ends it.
class SomeonesRun : public fairness::Work {
 public:
  double predicted_seconds() const override { return 1e-3; }
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration) override {
    ticket_ = ticket;
    return Handed::kAll;
  }
  void Fail(const absl::Status& status) override { ADD_FAILURE() << status; }
  std::string label() const override { return "run"; }
  int64_t ticket() const { return ticket_; }

 private:
  int64_t ticket_ = 0;
};

class IdleTunerTest : public ::testing::Test {
 protected:
  IdleTunerTest() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/kiln_idle_XXXXXX");
    folder_ = mkdtemp(pattern.data());
    store_ = std::make_unique<SettingStore>(
        SettingStore::Options{.folder = folder_, .now = clock_.wall});
    tuner_ = std::make_unique<Tuner>(Tuner::Options{
        .store = store_.get(),
        .compile =
            [](const workers::KernelJob& job) {
              drivers::KernelImage image;
              image.code = job.schedule;
              return absl::StatusOr<drivers::KernelImage>(image);
            },
        .make_runner = [this](const kernel::Kernel& kernel, runtime::ManagedDevice& device)
            -> absl::StatusOr<std::unique_ptr<TrialRunner>> {
          return std::make_unique<ScriptRunner>(script_, kernel, *device.pool());
        },
        .metrics = &metrics_,
        .clock = clock_,
        .on_changed = [] {}});
  }
  ~IdleTunerTest() override {
    script_.Hold(false);
    idle_.reset();
    tuner_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start(DayHours hours = {}) {
    IdleTuner::Options options;
    options.tuner = tuner_.get();
    options.store = store_.get();
    options.devices = {&device_};
    options.host_work = &host_work_;
    options.look_at_programs = [this](KernelUse& use) {
      ++looks_;
      for (const auto& [kernel, seconds] : std::exchange(used_, {}))
        use.Add(kernel, "program", seconds);
    };
    options.host = account_;
    options.clock = clock_;
    options.hours = hours;
    options.zone = absl::UTCTimeZone();
    options.quiet = kUsersQuiet;
    options.width = 1;
    options.interval = absl::Milliseconds(1);
    idle_ = std::make_unique<IdleTuner>(std::move(options));
  }
  // Users have used this kernel. Before Start.
  void Use(const std::string& name, int64_t elements, double seconds) {
    used_.emplace_back(
        KernelToTune{.name = name, .text = SumOf(elements), .device = &device_, .seconds = 1e-3},
        seconds);
  }
  void Advance(absl::Duration time) { seconds_ += absl::ToInt64Seconds(time); }
  std::shared_ptr<SomeonesRun> Run() {
    auto run = std::make_shared<SomeonesRun>();
    device_.dispatcher().Enqueue(ann_, run);
    return run;
  }
  void Finish(const std::shared_ptr<SomeonesRun>& run) {
    device_.dispatcher().Finished(run->ticket(), 1e-3);
  }
  bool Happens(const std::vector<std::string>& events) {
    return Eventually([&] { return script_.events() == events; });
  }
  bool IsSearching() { return !tuner_->List().empty(); }
  int WidthOf(int64_t elements) {
    const auto found = store_->Find(SumOf(elements), device_.info().target.HardwareKey());
    return found ? found->width : -1;
  }
  // Waits until it has looked again.
  void AwaitLook() {
    Advance(absl::Minutes(1));
    const int before = looks_;
    EXPECT_TRUE(Eventually([&] { return looks_ > before; }));
  }

  std::atomic<int64_t> seconds_{12 * 3600};
  Clock clock_ = kiln::testing::ClockOf([this] { return absl::FromUnixSeconds(seconds_.load()); });
  std::string folder_;
  Script script_;
  const std::shared_ptr<memory::HostMemory> host_ =
      std::make_shared<memory::HostMemory>(1 << 20, 1);
  const std::shared_ptr<memory::Account> account_ = host_->NewUserAccount(kTunerUser);
  fairness::HostWork host_work_{clock_.steady};
  metrics::Metrics metrics_{"test"};
  runtime::ManagedDevice device_{std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1 << 20), 0,
                                 metrics_.ForDevice("cpu:0"), clock_};
  const fairness::FairQueue::FlowId ann_ = device_.dispatcher().AddFlow("ann", 100);
  std::unique_ptr<SettingStore> store_;
  std::unique_ptr<Tuner> tuner_;
  std::atomic<int> looks_{0};
  std::vector<std::pair<KernelToTune, double>> used_;
  std::unique_ptr<IdleTuner> idle_;
};

TEST_F(IdleTunerTest, ASearchIsChargedForTheResultsThatItCompares) {
  Use("a", 64, 1);
  script_.Hold(true);
  Start();
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search a"}));
  EXPECT_EQ(host_->used_bytes(), 64 * (3 * sizeof(float) + sizeof(double)));
  script_.Hold(false);
  EXPECT_TRUE(Eventually([&] { return !IsSearching(); }));
  EXPECT_EQ(host_->used_bytes(), 0);
}

TEST_F(IdleTunerTest, AKernelWithTooLargeResultsIsNotSearched) {
  account_->SetLimit(1000);
  Use("a", 64, 2);
  Use("b", 32, 1);
  Start();
  Advance(kUsersQuiet);
  EXPECT_TRUE(Happens({"search b"}));
  AwaitLook();
  EXPECT_EQ(WidthOf(64), -1);
}

TEST_F(IdleTunerTest, SearchesWhatUsersUseMostOnceTheyAreQuiet) {
  Use("little", 64, 1);
  Use("much", 128, 5);
  Start();
  ASSERT_TRUE(Eventually([&] { return looks_ == 1; }));
  EXPECT_THAT(script_.events(), IsEmpty());
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search much", "search little"}));
  ASSERT_TRUE(Eventually([&] { return WidthOf(64) == 1 && !IsSearching(); }));
  EXPECT_EQ(WidthOf(128), 1);
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("kiln_tune_kernels_total{origin=\"idle\",outcome=\"faster\"} 2"));
  // Nothing is left.
  AwaitLook();
  AwaitLook();
  EXPECT_TRUE(Happens({"search much", "search little"}));
}

TEST_F(IdleTunerTest, SkipsWhatWasSearchedOrIsTooLarge) {
  Use("large", 1 << 16, 9);  // 512 KiB of the device's 1 MiB
  Use("searched", 64, 5);
  Use("new", 128, 1);
  ASSERT_TRUE(tuner_->Tune({used_[1].first}, "p", {.width = 1}).ok());
  Start();
  Advance(kUsersQuiet);
  EXPECT_TRUE(Happens({"search searched", "search new"}));
  AwaitLook();
  AwaitLook();
  EXPECT_TRUE(Happens({"search searched", "search new"}));
}

TEST_F(IdleTunerTest, PausesForUsersWorkAndGoesOnOnceTheyAreQuiet) {
  script_.Hold(true);
  Use("sum", 64, 5);
  Start();
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search sum"}));
  const auto run = Run();
  ASSERT_TRUE(Happens({"search sum", "pause"}));
  Advance(10 * kUsersQuiet);  // it still runs
  Finish(run);
  AwaitLook();
  EXPECT_TRUE(Happens({"search sum", "pause", "resume"}));
  // One that is over before it was noticed.
  Finish(Run());
  ASSERT_TRUE(Happens({"search sum", "pause", "resume", "pause"}));
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search sum", "pause", "resume", "pause", "resume"}));
  script_.Hold(false);
  EXPECT_TRUE(Eventually([&] { return WidthOf(64) == 1; }));
}

TEST_F(IdleTunerTest, PausesForCompilationsAndUploads) {
  script_.Hold(true);
  Use("sum", 64, 5);
  Start();
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search sum"}));
  {
    const fairness::HostWork::Piece compilation(&host_work_);
    ASSERT_TRUE(Happens({"search sum", "pause"}));
    Advance(10 * kUsersQuiet);
    AwaitLook();
    EXPECT_TRUE(Happens({"search sum", "pause"}));
  }
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search sum", "pause", "resume"}));
  host_work_.Touch();
  ASSERT_TRUE(Happens({"search sum", "pause", "resume", "pause"}));
}

TEST_F(IdleTunerTest, AUserMayAllocateAllOfTheDevice) {
  script_.Hold(true);
  Use("sum", 64, 5);
  Start();
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search sum"}));
  buffers::Pool& pool = *device_.pool();
  ASSERT_EQ(pool.used_bytes(), 64);
  auto users = pool.Reserve(pool.total_bytes(), std::make_shared<buffers::Account>());
  ASSERT_TRUE(users.ok()) << users.status();
  EXPECT_TRUE(Happens({"search sum", "pause"}));
  users->reset();
  EXPECT_EQ(pool.used_bytes(), 0);
  Advance(kUsersQuiet);
  EXPECT_TRUE(Happens({"search sum", "pause", "resume"}));
}

TEST_F(IdleTunerTest, EndsAtOnceWhenItIsStopped) {
  script_.Hold(true);
  Use("sum", 64, 5);
  Start();
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search sum"}));
  idle_->Stop();
  EXPECT_TRUE(Eventually([&] { return !IsSearching(); }));
  EXPECT_EQ(WidthOf(64), -1);
}

TEST_F(IdleTunerTest, LetsAUsersTuningGoFirst) {
  script_.Hold(true);
  Use("sum", 64, 5);
  Start();
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search sum"}));
  auto asked = tuner_->Begin(
      {&device_}, {.program = "p", .user = "ann", .control = std::make_shared<TuningControl>()});
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(tuner_->List().size(), 1);
  script_.Hold(false);
  AwaitLook();
  AwaitLook();
  EXPECT_THAT(script_.events(), ElementsAre("search sum"));
  asked->reset();
  // From the beginning, since it was cut short.
  EXPECT_TRUE(Happens({"search sum", "search sum"}));
  EXPECT_TRUE(Eventually([&] { return WidthOf(64) == 1; }));
}

TEST_F(IdleTunerTest, DoesNotRepeatWhatAnAdminHasStopped) {
  script_.Hold(true);
  Use("stopped", 64, 5);
  Use("next", 128, 1);
  Start();
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search stopped"}));
  ASSERT_TRUE(tuner_->Cancel(tuner_->List()[0].id, "", "an admin has stopped it").ok());
  ASSERT_TRUE(Happens({"search stopped", "search next"}));
}

TEST_F(IdleTunerTest, KeepsItsHours) {
  script_.Hold(true);
  Use("sum", 64, 5);
  Start({.begin = 13, .end = 14});
  AwaitLook();
  AwaitLook();
  EXPECT_THAT(script_.events(), IsEmpty());
  Advance(absl::Hours(1));
  ASSERT_TRUE(Happens({"search sum"}));
  Advance(absl::Hours(1));
  EXPECT_TRUE(Eventually([&] { return !IsSearching(); }));
}

TEST_F(IdleTunerTest, LeavesADeviceThatDrains) {
  script_.Hold(true);
  Use("sum", 64, 5);
  Start();
  Advance(kUsersQuiet);
  ASSERT_TRUE(Happens({"search sum"}));
  device_.SetDraining(true);
  EXPECT_TRUE(Eventually([&] { return !IsSearching(); }));
  device_.SetDraining(false);
  AwaitLook();
  EXPECT_TRUE(Happens({"search sum", "search sum"}));
}

}  // namespace
}  // namespace kiln::tuner
