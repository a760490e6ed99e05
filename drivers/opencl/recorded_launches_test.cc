// Tests of lists as command buffers, on a stand-in with strict checks; conformance tests run them
// on PoCL and Intel's runtime.
#include "drivers/opencl/recorded_launches.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/opencl/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::opencl {
namespace {

using ::kiln::testing::Eventually;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kInvalidOperation = -59;
constexpr int kInvalidCommandBuffer = -1138;

// x = 5 x + 7 for the first number of the first argument of kernels that take a slot table.
std::atomic<int> unnamed = 0;  // arguments in memory that was not named to the kernel
void Step(const stand_ins::opencl::KernelRun& run) {
  if (run.num_parameters < 2) return;
  const auto* table = reinterpret_cast<const uint64_t*>(run.parameters[0]);
  const uint64_t packed = run.parameters[1];
  char* const slot = reinterpret_cast<char*>(table[packed >> kSlotOffsetBits]);
  if (std::find(run.named, run.named + run.num_named, slot) == run.named + run.num_named) ++unnamed;
  auto* const value = reinterpret_cast<uint32_t*>(slot + (packed & kSlotOffsetMask));
  *value = 5 * *value + 7;
}

uint32_t AfterSteps(int steps, uint32_t value = 0) {
  for (int i = 0; i < steps; ++i) value = 5 * value + 7;
  return value;
}

class RecordedLaunchesTest : public OpenClTest {
 protected:
  void SetUp() override {
    OpenClTest::SetUp();
    control_->has_command_buffers = true;
    control_->kernel = Step;
    unnamed = 0;
  }
  void TearDown() override {
    kernel_ = nullptr;
    EXPECT_EQ(unnamed, 0);
    OpenClTest::TearDown();
  }

  // The cost of a call of `use`; also checks that the device ran this many launches.
  struct Cost {
    int64_t enqueued, buffers, recorded, copies;
    bool operator==(const Cost& other) const {
      return enqueued == other.enqueued && buffers == other.buffers && recorded == other.recorded &&
             copies == other.copies;
    }
    friend void PrintTo(const Cost& cost, std::ostream* out) {
      *out << cost.enqueued << " launches enqueued, " << cost.buffers << " command buffers, "
           << cost.recorded << " launches recorded, " << cost.copies << " copies";
    }
  };
  template <typename Use>
  Cost CostOf(Use use) {
    const auto now = [this] {
      return Cost{control_->launches_enqueued, control_->buffers_enqueued,
                  control_->launches_recorded, control_->copies};
    };
    const Cost before = now();
    use();
    const Cost after = now();
    return {after.enqueued - before.enqueued, after.buffers - before.buffers,
            after.recorded - before.recorded, after.copies - before.copies};
  }

  void Open(CommandBuffers command_buffers = CommandBuffers::kWhereTheyHelp,
            bool sharing_host_memory = false) {
    OpenClTest::Open(
        {.sharing_host_memory = sharing_host_memory,
         .command_buffers = command_buffers,
         .on_broken_command_buffers = [this](const std::string& device, const absl::Status& why) {
           broken_.push_back(absl::StrCat(device, ": ", why.message()));
         }});
  }
  void Load() { kernel_ = *device().LoadKernel(TableImage(1)); }
  // Returns `count` launches on slot 0.
  std::vector<Command> Steps(int count) {
    return std::vector<Command>(count, LaunchCommand{kernel_.get(), {{0, 0, 64}}});
  }
  std::unique_ptr<PreparedList> Prepare(std::vector<Command> commands, int slots = 1) {
    return *device().Prepare({.num_slots = slots, .commands = std::move(commands)});
  }
  // Runs the list until the next run may be recorded.
  void Settle(PreparedList& list, const std::vector<Buffer*>& slots) {
    EXPECT_TRUE(Run(list, slots).status.ok());
  }

  std::unique_ptr<LoadedKernel> kernel_;
  std::vector<std::string> broken_;  // reports about command buffers, from running lists
};

TEST_F(RecordedLaunchesTest, AThousandLaunchesWithOtherBuffersAreOneCopyAndOneCall) {
  Open();
  constexpr int kLaunches = 1000;
  constexpr int kSlots = 40;
  Load();
  std::vector<Command> commands;
  for (int i = 0; i < kLaunches; ++i)
    commands.emplace_back(LaunchCommand{kernel_.get(), {{i % kSlots, 0, 64}}});
  auto list = Prepare(std::move(commands), kSlots);
  const auto buffers = ManyZeros(3 * kSlots / 2);
  std::vector<Buffer*> slots = Slots(buffers, kSlots);
  const auto run = [&] { EXPECT_TRUE(Run(*list, slots).status.ok()); };
  const auto swap_half = [&] {
    for (int i = 0; i < kSlots / 2; ++i) {
      Buffer* const other = buffers[kSlots + i].get();
      slots[2 * i] = slots[2 * i] == other ? buffers[2 * i].get() : other;
    }
  };
  EXPECT_EQ(CostOf(run), (Cost{kLaunches, 0, 0, 1})) << "may be the only run";
  EXPECT_EQ(CostOf(run), (Cost{0, 1, kLaunches, 0}));
  EXPECT_EQ(CostOf(run), (Cost{0, 1, 0, 0}));
  swap_half();
  EXPECT_EQ(CostOf(run), (Cost{kLaunches, 0, 0, 1})) << "kernels are told of memory";
  swap_half();
  EXPECT_EQ(CostOf(run), (Cost{0, 1, kLaunches, 1})) << "and are recorded as they are now";
  const int64_t set = control_->arguments_set;
  for (int i = 0; i < 3; ++i) {
    swap_half();
    EXPECT_EQ(CostOf(run), (Cost{0, 1, 0, 1}));
  }
  EXPECT_EQ(control_->arguments_set, set);
  // Three runs used the other buffers, and five the original ones.
  constexpr int kStepsEach = kLaunches / kSlots;
  EXPECT_EQ(Read(*buffers[0]), AfterSteps(5 * kStepsEach));
  EXPECT_EQ(Read(*buffers[1]), AfterSteps(8 * kStepsEach));
  EXPECT_EQ(Read(*buffers[kSlots]), AfterSteps(3 * kStepsEach));
}

TEST_F(RecordedLaunchesTest, OnlyLaunchesWithATableThatStandTogetherAreRecorded) {
  Open();
  Load();
  auto with_address = *device().LoadKernel(Image(1));
  std::vector<Command> commands = Steps(5);
  const auto add = [&commands](const std::vector<Command>& more) {
    commands.insert(commands.end(), more.begin(), more.end());
  };
  add({CopyCommand{{0, 0, 64}, {1, 0, 64}}});
  add(Steps(6));
  add({SignalCommand{0}, WaitCommand{0}});
  add(Steps(3));  // too few
  add({LaunchCommand{with_address.get(), {{1, 0, 64}}}});
  add(Steps(4));
  add({FillCommand{{2, 0, 64}, 1}});
  auto list = Prepare(commands, 3);
  auto a = Zeros();
  auto b = Zeros();
  auto c = Zeros();
  const auto run = [&] {
    const SubmitOptions options{.group =
                                    std::make_shared<SignalGroup>(std::make_shared<Signals>(4))};
    EXPECT_TRUE(Run(*list, {a.get(), b.get(), c.get()}, options).status.ok());
  };
  EXPECT_EQ(CostOf(run), (Cost{19, 0, 0, 2}));
  EXPECT_EQ(CostOf(run), (Cost{4, 3, 15, 1}));
  EXPECT_EQ(CostOf(run), (Cost{4, 3, 0, 1}));
  EXPECT_EQ(Read(*a), AfterSteps(3 * 18));
  EXPECT_EQ(Read(*b), AfterSteps(2 * 18 + 5)) << "as the copy found it in the last run";
  EXPECT_EQ(Read(*c), 0x01010101u);
}

TEST_F(RecordedLaunchesTest, LongListsHaveSeveralCommandBuffers) {
  Open();
  Load();
  constexpr int kLaunchesMax = RecordedLaunches::kLaunchesMax;
  auto list = Prepare(Steps(2 * kLaunchesMax + 1));
  auto buffer = Zeros();
  const auto run = [&] { EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok()); };
  run();
  EXPECT_EQ(CostOf(run), (Cost{1, 2, 2 * kLaunchesMax, 0}));
  EXPECT_EQ(Read(*buffer), AfterSteps(2 * (2 * kLaunchesMax + 1)));
}

TEST_F(RecordedLaunchesTest, TimedRunsAreEnqueuedOneByOne) {
  Open();
  Load();
  auto list = Prepare(Steps(10));
  auto buffer = Zeros();
  control_->time.Simulate(/*launch_milliseconds=*/1);
  SubmitResult result;
  const auto run = [&](bool timed) {
    return CostOf(
        [&] { result = Run(*list, {buffer.get()}, {.time_commands = timed, .group = nullptr}); });
  };
  run(false);
  EXPECT_EQ(run(true), (Cost{10, 0, 0, 0}));
  ASSERT_EQ(result.command_seconds.size(), 10u);
  for (const double seconds : result.command_seconds) EXPECT_NEAR(seconds, 1e-3, 1e-6);
  EXPECT_EQ(run(false), (Cost{0, 1, 10, 0}));
  EXPECT_TRUE(result.command_seconds.empty());
  // Without the marker, the time would be nearly 0.
  EXPECT_NEAR(result.seconds, 10e-3, 1e-6);
  EXPECT_EQ(run(true), (Cost{10, 0, 0, 0}));
  EXPECT_EQ(run(false), (Cost{0, 1, 0, 0}));
}

TEST_F(RecordedLaunchesTest, ListsMayBeSubmittedBeforeTheyHaveEnded) {
  for (const bool simultaneous : {false, true}) {
    control_->command_buffer_capabilities = simultaneous ? 1 << 2 : 0;
    Open();
    Load();
    auto list = Prepare(Steps(5));
    auto a = Zeros();
    auto b = Zeros();
    Settle(*list, {a.get()});
    Settle(*list, {b.get()});
    const int64_t made = control_->buffers_made;
    control_->launch_gate.Close();
    const Cost cost = CostOf([&] {
      for (int i = 0; i < 20; ++i) {
        Buffer* slots[] = {i % 2 == 0 ? a.get() : b.get()};
        ASSERT_TRUE(device()
                        .Submit(*list, slots, {},
                                [](SubmitResult result) { EXPECT_TRUE(result.status.ok()); })
                        .ok());
      }
      // The maximum number of lists is in flight, and the next one waits for one of them.
      EXPECT_TRUE(Eventually([&] { return waiting() == 1; }));
      control_->launch_gate.Open();
      EXPECT_TRUE(device().Synchronize().ok());
    });
    EXPECT_EQ(cost.enqueued, 0);
    EXPECT_EQ(cost.buffers, 20);
    const int64_t buffers = control_->buffers_made - made;
    if (simultaneous) {
      EXPECT_EQ(buffers, 1);
    } else {
      EXPECT_GT(buffers, 1);
      EXPECT_LE(buffers, static_cast<int64_t>(RecordedLaunches::kBuffersMax));
    }
    EXPECT_EQ(Read(*a), AfterSteps(11 * 5));
    EXPECT_EQ(Read(*b), AfterSteps(11 * 5));
    kernel_ = nullptr;
  }
}

TEST_F(RecordedLaunchesTest, ALibraryMayKnowLateThatABufferHasEnded) {
  Open();
  Load();
  auto list = Prepare(Steps(5));
  auto buffer = Zeros();
  const auto run = [&] { EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok()); };
  run();
  control_->next_buffer_refused = kInvalidOperation;
  EXPECT_EQ(CostOf(run), (Cost{5, 0, 5, 0}));
  EXPECT_EQ(CostOf(run), (Cost{0, 1, 0, 0}));
  EXPECT_EQ(Read(*buffer), AfterSteps(15));
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(RecordedLaunchesTest, SignalsAreRaisedBehindACommandBuffer) {
  Open();
  Load();
  std::vector<Command> commands = Steps(5);
  commands.emplace_back(SignalCommand{0});
  auto list = Prepare(std::move(commands));
  auto buffer = Zeros();
  Run(*list, {buffer.get()},
      {.group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4))});
  control_->launch_gate.Close();
  const int64_t launches = control_->launches;
  const int64_t buffers = control_->buffers_enqueued;
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  Buffer* slots[] = {buffer.get()};
  ASSERT_TRUE(device().Submit(*list, slots, {.group = group}, [](SubmitResult) {}).ok());
  EXPECT_TRUE(Eventually([&] {
    return group->IsDecided(0) || (control_->launch_gate.held() == 1 && control_->waiting == 1);
  }));
  EXPECT_FALSE(group->IsDecided(0)) << "while its first launch is held";
  control_->launch_gate.Open();
  EXPECT_TRUE(group->Wait(0).ok());
  EXPECT_EQ(control_->launches, launches + 5);
  EXPECT_TRUE(device().Synchronize().ok());
  EXPECT_EQ(control_->buffers_enqueued, buffers + 1);
  control_->next_buffer_fails = kOutOfResources;
  group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  EXPECT_FALSE(Run(*list, {buffer.get()}, {.group = group}).status.ok());
  EXPECT_THAT(group->Wait(0).message(), HasSubstr("CL_OUT_OF_RESOURCES"));
}

TEST_F(RecordedLaunchesTest, AnErrorThatPassesFailsOneRun) {
  Open();
  Load();
  auto list = Prepare(Steps(5));
  auto buffer = Zeros();
  Settle(*list, {buffer.get()});
  control_->next_buffer_refused = kOutOfResources;
  absl::Status status = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cannot launch 5 recorded kernels: CL_OUT_OF_RESOURCES"));
  control_->next_buffer_fails = kOutOfResources;
  EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(device().Health().ok());
  EXPECT_EQ(CostOf([&] { EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok()); }),
            (Cost{0, 1, 0, 0}));
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(RecordedLaunchesTest, ALostDeviceRecordsAnewOnceItIsRevived) {
  Open();
  Load();
  auto list = Prepare(Steps(5));
  auto buffer = Zeros();
  Settle(*list, {buffer.get()});
  Settle(*list, {buffer.get()});
  control_->lost = true;
  EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  control_->lost = false;
  ASSERT_TRUE(device().Revive().ok());
  list = nullptr;
  Load();
  list = Prepare(Steps(5));
  buffer = Zeros();
  Settle(*list, {buffer.get()});
  EXPECT_EQ(CostOf([&] { EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok()); }),
            (Cost{0, 1, 5, 0}));
  EXPECT_EQ(Read(*buffer), AfterSteps(10));
}

TEST_F(RecordedLaunchesTest, WhereRecordingFailsListsRunAsBeforeAndThatIsSaidOnce) {
  control_->finalize_refused = kInvalidOperation;
  Open();
  Load();
  auto list = Prepare(Steps(5));
  auto other = Prepare(Steps(6));
  auto buffer = Zeros();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
    EXPECT_TRUE(Run(*other, {buffer.get()}).status.ok());
  }
  EXPECT_EQ(Read(*buffer), AfterSteps(33));
  EXPECT_THAT(broken_, ElementsAre(AllOf(HasSubstr("opencl:0"), HasSubstr("finalize"),
                                         HasSubstr("CL_INVALID_OPERATION"))));
  EXPECT_TRUE(device().Health().ok());
}

TEST_F(RecordedLaunchesTest, CommandBuffersThatTheLibraryDoesNotKnowAreGivenUp) {
  Open();
  Load();
  auto list = Prepare(Steps(5));
  auto buffer = Zeros();
  const auto run = [&] { EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok()); };
  run();
  control_->next_buffer_refused = kInvalidCommandBuffer;
  EXPECT_EQ(CostOf(run), (Cost{5, 0, 5, 0}));
  EXPECT_EQ(CostOf(run), (Cost{5, 0, 0, 0}));
  EXPECT_THAT(broken_, ElementsAre(HasSubstr("CL_INVALID_COMMAND_BUFFER_KHR")));
  EXPECT_EQ(Read(*buffer), AfterSteps(15));
}

TEST_F(RecordedLaunchesTest, ListsThatAreTooLongForTheLibraryRunAsBefore) {
  control_->recorded_launches_max = 100;
  Open();
  Load();
  auto list = Prepare(Steps(101));
  auto other = Prepare(Steps(100));
  auto buffer = Zeros();
  const auto run = [&] { EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok()); };
  run();
  EXPECT_EQ(CostOf(run), (Cost{101, 0, 100, 0})) << "it has tried";
  EXPECT_EQ(CostOf(run), (Cost{101, 0, 0, 0})) << "and does not try again";
  Settle(*other, {buffer.get()});
  EXPECT_EQ(CostOf([&] { EXPECT_TRUE(Run(*other, {buffer.get()}).status.ok()); }),
            (Cost{0, 1, 100, 0}));
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(RecordedLaunchesTest, CommandBuffersAreUsedWhereTheyHelpOrAreAskedFor) {
  const auto buffers = [this](CommandBuffers use, size_t number) {
    Open(use, /*sharing_host_memory=*/true);
    Device& device = *devices_[number];
    auto kernel = *device.LoadKernel(TableImage(1));
    auto list = *device.Prepare(
        {.num_slots = 1,
         .commands = std::vector<Command>(5, LaunchCommand{kernel.get(), {{0, 0, 64}}})});
    auto buffer = *device.Allocate(64);
    Buffer* slots[] = {buffer.get()};
    return CostOf([&] {
             for (int i = 0; i < 3; ++i) {
               EXPECT_TRUE(device.Submit(*list, slots, {}, [](SubmitResult) {}).ok());
               EXPECT_TRUE(device.Synchronize().ok());
             }
           })
        .buffers;
  };
  constexpr size_t kGpu = 0, kProcessor = 1;
  EXPECT_EQ(buffers(CommandBuffers::kWhereTheyHelp, kGpu), 2);
  EXPECT_EQ(buffers(CommandBuffers::kWhereTheyHelp, kProcessor), 0);
  EXPECT_EQ(buffers(CommandBuffers::kAlways, kProcessor), 2);
  EXPECT_EQ(buffers(CommandBuffers::kNever, kGpu), 0);
  control_->required_queue_properties = 1 << 1;  // CL_QUEUE_PROFILING_ENABLE
  EXPECT_EQ(buffers(CommandBuffers::kAlways, kGpu), 2);
  control_->required_queue_properties = 1 << 0;  // CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
  EXPECT_EQ(buffers(CommandBuffers::kAlways, kGpu), 0);
  control_->required_queue_properties = 0;
  control_->has_command_buffers = false;
  EXPECT_EQ(buffers(CommandBuffers::kAlways, kGpu), 0);
}

TEST_F(RecordedLaunchesTest, RecordedListsMayOutliveTheirDevice) {
  Open();
  Load();
  auto list = Prepare(Steps(5));
  auto buffer = Zeros();
  Settle(*list, {buffer.get()});
  EXPECT_EQ(CostOf([&] { Settle(*list, {buffer.get()}); }).buffers, 1);
  buffer = nullptr;
  devices_.clear();
  EXPECT_GT(control_->objects, 0);
  list = nullptr;
  kernel_ = nullptr;
  EXPECT_EQ(control_->objects, 0);
}

}  // namespace
}  // namespace kiln::drivers::opencl
