// Runs that are submitted in pieces: work between the pieces, early ends, and their memory.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metrics.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/run/run.h"
#include "server/testing/fake_device.h"

namespace kiln::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBytes = 64;
constexpr int64_t kArenaBytes = 2 * kBytes;

class SlicedRunTest : public ::testing::Test {
 protected:
  struct Waited {
    absl::Notification ended;
    absl::Status status;
    double seconds = 0;
    std::vector<ValuePointer> results;
    float first() const { return *static_cast<const float*>(results[0]->buffer()->host_pointer()); }
  };

  explicit SlicedRunTest(int64_t memory_bytes = 1 << 20)
      : raw_(new kiln::testing::FakeDevice("cpu:0", memory_bytes)) {
    raw_->TakeTime();
    device_ = std::make_unique<ManagedDevice>(std::unique_ptr<drivers::Device>(raw_), 0,
                                              metrics_.ForDevice("cpu:0"), SystemClock());
  }

  ~SlicedRunTest() override {
    EXPECT_TRUE(device_->dispatcher().WaitIdle(absl::InfiniteDuration()));
  }

  // Three times its input: a copy to the arena, a sum in the arena, a sum to the output. Each
  // kernel takes this many milliseconds; `last` is the code of the last.
  std::shared_ptr<Program> Triple(int64_t milliseconds, const std::string& last = "add",
                                  int64_t points = 1) {
    compiler::CompiledProgram compiled;
    const auto kernel = [&](const std::string& code) {
      compiled.kernels.emplace_back();
      compiled.kernels.back().image.name = compiled.kernels.back().image.code = code;
      compiled.kernels.back().image.flops = 1000 * milliseconds;
      compiled.kernels.back().image.grid_size = points;
      compiled.kernels.back().image.runs_parts = points > 1;
    };
    kernel("copy");
    kernel("add");
    kernel(last);
    using Kind = compiler::Slot::Kind;
    compiled.slots = {
        {Kind::kInput, 0, kBytes}, {Kind::kOutput, 0, kBytes}, {Kind::kArena, 0, kArenaBytes}};
    const compiler::Argument in{0, 0, kBytes}, out{1, 0, kBytes};
    const compiler::Argument once{2, 0, kBytes}, twice{2, kBytes, kBytes};
    compiled.calls = {{0, {in, once}}, {1, {once, once, twice}}, {2, {twice, once, out}}};
    const auto type = std::make_shared<const buffers::TensorType>(
        buffers::TensorType{ir::DType::kFloat32, {kBytes / 4}});
    Signature signature;
    signature.inputs = {type};
    signature.outputs = {type};
    auto program = Program::Load({*device_, std::move(compiled)},
                                 {"digest", "", "triple", absl::Now(), 0}, signature);
    EXPECT_TRUE(program.ok()) << program.status();
    return *program;
  }
  ValuePointer Input(const Program& program, float value) {
    auto input = *device_->pool()->Allocate(program.signature().inputs[0], account_);
    auto* data = static_cast<float*>(input->buffer()->host_pointer());
    std::fill(data, data + kBytes / 4, value);
    input->Resolve(absl::OkStatus());
    return input;
  }
  // Returns a run, which is not queued, and its outcome.
  std::pair<std::shared_ptr<runtime::Run>, std::shared_ptr<Waited>> Make(
      const std::shared_ptr<Program>& program, float value) {
    auto waited = std::make_shared<Waited>();
    auto run = runtime::Run::Create(
        "s1/1", Bound(program), {Input(*program, value)}, {account_}, nullptr,
        [waited](const absl::Status& status, absl::Span<const runtime::Run::DeviceTime> times) {
          waited->status = status;
          waited->seconds = times[0].seconds;
          waited->ended.Notify();
        });
    EXPECT_TRUE(run.ok()) << run.status();
    waited->results = (*run)->results();
    return {*run, waited};
  }
  std::shared_ptr<Waited> Start(fairness::FairQueue::FlowId flow,
                                const std::shared_ptr<Program>& program, float value) {
    auto [run, waited] = Make(program, value);
    device_->dispatcher().Enqueue(flow, std::move(run));
    return waited;
  }
  // Programs are cut according to their sizes until they have run.
  void RunOnce(const std::shared_ptr<Program>& program) {
    const auto flow = device_->dispatcher().AddFlow("first", 1);
    const auto waited = Start(flow, program, 1);
    waited->ended.WaitForNotification();
    EXPECT_TRUE(waited->status.ok()) << waited->status;
    waited->results.clear();
    EXPECT_TRUE(device_->dispatcher().WaitIdle(absl::InfiniteDuration()));
    device_->dispatcher().RemoveFlow(flow);
  }

  metrics::Metrics metrics_{"test"};
  kiln::testing::FakeDevice* raw_;
  std::unique_ptr<ManagedDevice> device_;
  const std::shared_ptr<buffers::Account> account_ = std::make_shared<buffers::Account>();
};

TEST_F(SlicedRunTest, ProgramsAreCutWhereTheyTakeLongerThanASlice) {
  const auto pieces = [&](const std::shared_ptr<Program>& program) -> size_t {
    RunOnce(program);
    const auto cut = *program->CutIntoPieces(*program->OnDevices());
    return cut ? cut->seconds.size() : 1;
  };
  EXPECT_EQ(pieces(Triple(1)), 1);
  EXPECT_EQ(pieces(Triple(3)), 1);
  EXPECT_EQ(pieces(Triple(4)), 3);
  EXPECT_EQ(pieces(Triple(100)), 3) << "a kernel that runs no parts is never cut";
}

TEST_F(SlicedRunTest, KernelsAreCutBetweenThePointsOfTheirGrids) {
  std::vector<drivers::GridRange> ran;
  raw_->SetKernel("note", [&](const kiln::testing::FakeArguments& arguments) {
    ran.push_back(arguments.points);
    return absl::OkStatus();
  });
  const auto program = Triple(100, "note", /*points=*/100);
  RunOnce(program);
  const auto pieces = *program->CutIntoPieces(*program->OnDevices());
  ASSERT_EQ(pieces->seconds.size(), 60);
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_NEAR(pieces->seconds[i], 0.005, 1e-6);
    EXPECT_EQ(pieces->lists[0][i].first_command, i / 20);
  }
  ran.clear();
  RunOnce(program);
  ASSERT_EQ(ran.size(), 20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ran[i].begin, 5 * i);
    EXPECT_EQ(ran[i].end, 5 * (i + 1));
  }
  // A kernel's time is the sum of its parts.
  const auto times = program->kernel_times();
  for (const KernelTimes& each : times) {
    EXPECT_EQ(each.samples, 1);
    EXPECT_NEAR(each.median_seconds, 0.1, 1e-6);
  }
}

// The command at which a run commits counts in the whole list, and each piece counts its own.
TEST_F(SlicedRunTest, ARunCommitsInThePieceThatWritesOverItsInput) {
  compiler::CompiledProgram compiled;
  for (const char* code : {"note", "update"}) {
    compiled.kernels.emplace_back();
    compiled.kernels.back().image.name = compiled.kernels.back().image.code = code;
    compiled.kernels.back().image.flops = 20'000;  // 20 ms
    compiled.kernels.back().image.grid_size = 1;
  }
  using Kind = compiler::Slot::Kind;
  compiled.slots = {{Kind::kInput, 0, kBytes}, {Kind::kUpdate, 0, kBytes}};
  const compiler::Argument in{0, 0, kBytes}, out{1, 0, kBytes};
  compiled.calls = {{0, {in}}, {1, {in, out}}};
  compiled.updates_in_place = {0};
  compiled.commit = 1;
  Signature signature;
  signature.inputs = signature.updates = {std::make_shared<const buffers::TensorType>(
      buffers::TensorType{ir::DType::kFloat32, {kBytes / 4}})};
  signature.updated_inputs = {0};
  runtime::Run* run = nullptr;
  std::vector<bool> had_committed;
  for (const char* code : {"note", "update"}) {
    raw_->SetKernel(code, [&](const kiln::testing::FakeArguments&) {
      if (run != nullptr) had_committed.push_back(run->has_committed());
      return absl::OkStatus();
    });
  }
  const auto program = *Program::Load({*device_, std::move(compiled)},
                                      {"digest", "", "update", absl::Now(), 0}, signature);
  RunOnce(program);
  ASSERT_EQ((*program->CutIntoPieces(*program->OnDevices()))->seconds.size(), 2);

  const ValuePointer input = Input(*program, 1);
  absl::Notification ended;
  const std::vector<ValuePointer> inputs = {input};
  auto made = runtime::Run::Create(
      "s1/2", Bound(program), inputs, {account_}, nullptr,
      [&](const absl::Status& status, absl::Span<const runtime::Run::DeviceTime>) {
        EXPECT_TRUE(status.ok()) << status;
        ended.Notify();
      },
      /*references=*/2);
  ASSERT_TRUE(made.ok()) << made.status();
  run = made->get();
  EXPECT_EQ(run->results()[0]->buffer(), input->buffer());
  const auto flow = device_->dispatcher().AddFlow("ann", 1);
  device_->dispatcher().Enqueue(flow, *made);
  ended.WaitForNotification();
  EXPECT_THAT(had_committed, ElementsAre(false, true));
}

// Another user's step runs after each piece of a kernel.
TEST_F(SlicedRunTest, AnotherUsersRunsComeBetweenThePartsOfAKernel) {
  std::string order;
  const auto note = [&order](char letter) {
    return [&order, letter](const kiln::testing::FakeArguments& arguments) {
      order += letter;
      return absl::OkStatus();
    };
  };
  raw_->SetKernel("long", note('L'));
  raw_->SetKernel("step", note('s'));
  const auto heavy = Triple(20, "long", /*points=*/1000);
  const auto light = Triple(1, "step");
  RunOnce(heavy);
  RunOnce(light);
  order.clear();
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  const auto bob = device_->dispatcher().AddFlow("bob", 1);
  raw_->Hold();
  std::vector<std::shared_ptr<Waited>> all;
  for (int i = 0; i < 5; ++i) all.push_back(Start(ann, heavy, 1));
  for (int i = 0; i < 40; ++i) all.push_back(Start(bob, light, 1));
  raw_->LetGo();
  for (const auto& waited : all) waited->ended.WaitForNotification();
  // While both have work, each gets 5 ms in turn, bob's in steps of 3 ms.
  size_t longest = 0, now = 0;
  for (const char letter : order.substr(0, order.rfind('s'))) {
    now = letter == 'L' ? now + 1 : 0;
    longest = std::max(longest, now);
  }
  EXPECT_LE(longest, 1) << order;
}

TEST_F(SlicedRunTest, ProgramsAreCutAgainByWhatTheirKernelsTake) {
  const auto program = Triple(4);
  const auto loaded = *program->OnDevices();
  const auto first = *program->CutIntoPieces(loaded);
  EXPECT_EQ(first->seconds.size(), 3);
  EXPECT_EQ(*program->CutIntoPieces(loaded), first);
  program->Record("ann", {0.012}, {{0.001, 0.001, 0.01}});
  const auto second = *program->CutIntoPieces(loaded);
  ASSERT_EQ(second->seconds.size(), 2);
  EXPECT_NEAR(second->seconds[0], 0.002, 1e-6);
  EXPECT_NEAR(second->seconds[1], 0.010, 1e-6);
  program->Record("ann", {0.012}, {{0.004, 0.004, 0.004}});
  EXPECT_EQ(*program->CutIntoPieces(loaded), second);
  for (int i = 0; i < 6; ++i) program->Record("ann", {0.012}, {{0.01, 0.001, 0.001}});
  EXPECT_NE(*program->CutIntoPieces(loaded), second);
}

TEST_F(SlicedRunTest, APieceIsExpectedToTakeWhatItTakes) {
  const auto program = Triple(4);
  RunOnce(program);
  EXPECT_NEAR(program->predicted_seconds(), 0.012, 1e-6);
  EXPECT_NEAR(program->first_seconds(), 0.005, 1e-6);
  EXPECT_EQ(program->runs(), 1);
  EXPECT_EQ(program->kernel_times()[2].samples, 1);
  EXPECT_EQ(raw_->lists_run(), 3);
}

// The same on a device whose programs are cut, and on one that ends lists early.
class SharedDeviceTest : public SlicedRunTest, public ::testing::WithParamInterface<bool> {
 protected:
  explicit SharedDeviceTest(int64_t memory_bytes = 1 << 20) : SlicedRunTest(memory_bytes) {
    if (GetParam()) raw_->Yield();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, SharedDeviceTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "ThatYield" : "WithCuts"; });

// With one arena, either would compute with the other's values.
TEST_P(SharedDeviceTest, RunsOfTwoUsersKeepTheirIntermediateResultsApart) {
  const auto program = Triple(6);
  const auto small = Triple(1);
  RunOnce(program);
  RunOnce(small);
  const int64_t before = raw_->lists_run();
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  const auto bob = device_->dispatcher().AddFlow("bob", 1);
  const auto cid = device_->dispatcher().AddFlow("cid", 1);
  raw_->Hold();
  std::vector<std::shared_ptr<Waited>> of_ann, of_bob, of_cid;
  for (int i = 0; i < 20; ++i) {
    of_ann.push_back(Start(ann, program, 1.0f + i));
    of_bob.push_back(Start(bob, program, 101.0f + i));
    of_cid.push_back(Start(cid, small, 201.0f + i));
  }
  raw_->LetGo();
  for (const auto* all : {&of_ann, &of_bob, &of_cid}) {
    for (const auto& waited : *all) {
      waited->ended.WaitForNotification();
      EXPECT_TRUE(waited->status.ok()) << waited->status;
    }
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(of_ann[i]->first(), 3 * (1.0f + i));
    EXPECT_EQ(of_bob[i]->first(), 3 * (101.0f + i));
    EXPECT_EQ(of_cid[i]->first(), 3 * (201.0f + i));
    EXPECT_NEAR(of_ann[i]->seconds, 0.018, 1e-9);
  }
  // The last run may have nothing left for another list.
  const int lists = GetParam() ? 2 : 3;
  EXPECT_LE(raw_->lists_run() - before, 20 * (lists + lists + 1));
  EXPECT_GE(raw_->lists_run() - before, 20 * (lists + lists + 1) - (GetParam() ? 1 : 0));
  EXPECT_GT(device_->arenas().count(), 1);
  EXPECT_LE(device_->arenas().count(), 3);
}

// Memory for the results of two runs and for one arena.
class LittleMemoryTest : public SharedDeviceTest {
 protected:
  LittleMemoryTest() : SharedDeviceTest(2 * 2 * kBytes + kArenaBytes) {}
};
INSTANTIATE_TEST_SUITE_P(Devices, LittleMemoryTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "ThatYield" : "WithCuts"; });

TEST_P(LittleMemoryTest, ARunWaitsForTheOnlyArena) {
  const auto program = Triple(6);
  RunOnce(program);
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  const auto bob = device_->dispatcher().AddFlow("bob", 1);
  for (int i = 0; i < 50; ++i) {
    raw_->Hold();
    const auto first = Start(ann, program, 1), second = Start(bob, program, 2);
    raw_->LetGo();
    first->ended.WaitForNotification();
    second->ended.WaitForNotification();
    EXPECT_TRUE(second->status.ok()) << second->status;
    EXPECT_EQ(first->first(), 3);
    EXPECT_EQ(second->first(), 6);
    EXPECT_EQ(device_->arenas().count(), 1);
    EXPECT_TRUE(device_->dispatcher().WaitIdle(absl::InfiniteDuration()));
    // The runs may live a little longer, and with them their callbacks.
    first->results.clear();
    second->results.clear();
  }
}

TEST_P(LittleMemoryTest, TheArenaOfARunThatIsDroppedIsForTheNext) {
  const auto program = Triple(6);
  RunOnce(program);
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  const auto bob = device_->dispatcher().AddFlow("bob", 1);
  raw_->Hold();
  const auto first = Start(ann, program, 1), second = Start(bob, program, 2);
  device_->dispatcher().RemoveFlow(ann);
  EXPECT_FALSE(first->ended.HasBeenNotified()) << "the device still uses its memory";
  raw_->LetGo();
  second->ended.WaitForNotification();
  EXPECT_EQ(second->first(), 6);
  first->ended.WaitForNotification();
  EXPECT_EQ(first->status.code(), absl::StatusCode::kCancelled);
}

TEST_P(SharedDeviceTest, ItsOwnersEndStopsItAtTheNextSlice) {
  const auto program = Triple(6);
  RunOnce(program);
  const int64_t before = raw_->lists_run();
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  raw_->Hold();
  const auto waited = Start(ann, program, 1);
  device_->dispatcher().RemoveFlow(ann);
  raw_->LetGo();
  waited->ended.WaitForNotification();
  EXPECT_EQ(waited->status.code(), absl::StatusCode::kCancelled);
  EXPECT_NEAR(waited->seconds, GetParam() ? 0.012 : 0.006, 1e-9) << "one slice was in flight";
  EXPECT_TRUE(device_->dispatcher().WaitIdle(absl::InfiniteDuration()));
  EXPECT_EQ(raw_->lists_run() - before, 1);
}

TEST_F(SlicedRunTest, CancelStopsItAndFreesItsMemoryOnceTheDeviceIsDone) {
  const auto program = Triple(4);
  RunOnce(program);
  EXPECT_EQ(account_->bytes(), 0);
  const int64_t before = raw_->lists_run();
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  raw_->Hold();
  auto [run, waited] = Make(program, 1);
  waited->results.clear();
  device_->dispatcher().Enqueue(ann, run);
  const auto next = Start(ann, program, 2);
  EXPECT_TRUE(run->Cancel());
  EXPECT_FALSE(run->Cancel());
  device_->dispatcher().DropUnwanted(ann);
  EXPECT_FALSE(waited->ended.HasBeenNotified());
  EXPECT_EQ(account_->bytes(), 2 * 2 * kBytes + kArenaBytes);
  raw_->LetGo();
  waited->ended.WaitForNotification();
  EXPECT_EQ(waited->status.code(), absl::StatusCode::kCancelled);
  next->ended.WaitForNotification();
  EXPECT_EQ(next->first(), 6);
  EXPECT_EQ(raw_->lists_run() - before, 1 + 3);
  EXPECT_TRUE(device_->dispatcher().WaitIdle(absl::InfiniteDuration()));
  next->results.clear();
  run.reset();
  EXPECT_EQ(account_->bytes(), 0);
}

TEST_F(SlicedRunTest, WhatHasBeenSubmittedWholeCannotBeCancelled) {
  const auto small = Triple(1);
  RunOnce(small);
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  raw_->Hold();
  auto [run, waited] = Make(small, 1);
  device_->dispatcher().Enqueue(ann, run);
  EXPECT_FALSE(run->Cancel());
  device_->dispatcher().DropUnwanted(ann);
  raw_->LetGo();
  waited->ended.WaitForNotification();
  EXPECT_TRUE(waited->status.ok());
  EXPECT_EQ(waited->first(), 3);
}

// A device that stops lists ends a submitted run early, unlike the device above.
TEST_F(SlicedRunTest, ADeviceThatStopsListsIsDoneAtOnce) {
  const auto small = Triple(1);
  RunOnce(small);
  raw_->StopLists();
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  raw_->Hold();
  auto [run, waited] = Make(small, 1);
  device_->dispatcher().Enqueue(ann, run);
  const auto next = Start(ann, small, 2);
  EXPECT_TRUE(run->Cancel());
  device_->device().StopUnwanted();
  waited->ended.WaitForNotification();
  EXPECT_EQ(waited->status.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(next->ended.HasBeenNotified());
  EXPECT_EQ(device_->health(), Health::kHealthy);
  raw_->LetGo();
  next->ended.WaitForNotification();
  EXPECT_EQ(next->first(), 6);
}

TEST_F(SlicedRunTest, WhatHasEndedCannotBeCancelled) {
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  auto [run, waited] = Make(Triple(1), 1);
  device_->dispatcher().Enqueue(ann, run);
  waited->ended.WaitForNotification();
  EXPECT_FALSE(run->Cancel());
  EXPECT_EQ(waited->first(), 3);
}

TEST_P(SharedDeviceTest, AFailedPieceFailsTheRunAndNothingElse) {
  raw_->SetKernel("fail_once", [failed = std::make_shared<std::atomic<bool>>(false)](
                                   const kiln::testing::FakeArguments& arguments) {
    if (!failed->exchange(true)) return absl::InternalError("the kernel failed");
    std::memcpy(arguments.data[2], arguments.data[0], kBytes);
    return absl::OkStatus();
  });
  const auto program = Triple(6, "fail_once");
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  raw_->Hold();
  const auto bad = Start(ann, program, 1), good = Start(ann, program, 2);
  raw_->LetGo();
  bad->ended.WaitForNotification();
  EXPECT_THAT(std::string(bad->status.message()), HasSubstr("the kernel failed"));
  good->ended.WaitForNotification();
  EXPECT_TRUE(good->status.ok()) << good->status;
  EXPECT_EQ(good->first(), 4);
}

// Lists and arenas belong to the life in which they were made; the fake device refuses earlier
// ones.
TEST_P(SharedDeviceTest, ADeviceThatIsLostAndRevivedRunsThemAgain) {
  const auto program = Triple(6);
  RunOnce(program);
  const auto ann = device_->dispatcher().AddFlow("ann", 1);
  for (int i = 0; i < 3; ++i) {
    raw_->Hold();
    const auto lost = Start(ann, program, 1), waits = Start(ann, program, 1);
    raw_->Break("it fell");
    raw_->LetGo();
    for (const auto& waited : {lost, waits}) {
      waited->ended.WaitForNotification();
      EXPECT_EQ(waited->status.code(), absl::StatusCode::kUnavailable);
    }
    EXPECT_TRUE(device_->dispatcher().WaitIdle(absl::InfiniteDuration()));
    raw_->Mend();
    ASSERT_TRUE(device_->TryRevive());
    const auto again = Start(ann, program, 2);
    again->ended.WaitForNotification();
    EXPECT_TRUE(again->status.ok()) << again->status;
    EXPECT_EQ(again->first(), 6);
    EXPECT_TRUE(device_->dispatcher().WaitIdle(absl::InfiniteDuration()));
  }
}

}  // namespace
}  // namespace kiln::runtime
