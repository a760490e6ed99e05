// The order of submissions: on one device, from many threads, between lists.
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/algorithm/container.h"
#include "tests/conformance/fixture.h"

namespace kiln::conformance {
namespace {

using testing::Each;
using testing::HasSubstr;

class OrderTest : public ConformanceTest {
 protected:
  // Counts results that are not OK.
  auto Done(std::function<void()> then = [] {}) {
    return [this, then](SubmitResult result) {
      EXPECT_TRUE(result.status.ok()) << result.status;
      then();
      ++done_;
    };
  }
  std::atomic<int> done_ = 0;
};

TEST_P(OrderTest, SubmissionsRunInOrder) {
  auto copy = Prepare(2, {CopyCommand{{0, 0, 4096}, {1, 0, 4096}}});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 50; ++i) buffers.push_back(Allocate(4096));
  for (uint8_t value = 1; value <= 5; ++value) {
    Write(*buffers[0], std::vector<uint8_t>(4096, value));
    std::vector<int> order;  // of the calls of `done`
    for (int i = 1; i < 50; ++i) {
      Buffer* slots[] = {buffers[i - 1].get(), buffers[i].get()};
      ASSERT_TRUE(
          device().Submit(*copy, slots, {}, Done([&order, i] { order.push_back(i); })).ok());
    }
    ASSERT_TRUE(device().Synchronize().ok());
    EXPECT_THAT(Read<uint8_t>(*buffers[49], 4096), Each(value));
    EXPECT_EQ(order.size(), 49u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  }
}

TEST_P(OrderTest, SubmitReturnsAtOnceAndCopiesWait) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().slow);
  auto list = Prepare(1, {LaunchCommand{kernel.get(), {{0, 0, 4}}}});
  auto held = Prepare(1, {WaitCommand{0}});
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(1));
  auto value = Allocate(4);
  Write(*value, std::vector<uint32_t>{0});
  Buffer* slots[] = {value.get()};
  ASSERT_TRUE(device().Submit(*held, slots, {.group = group}, Done()).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(device().Submit(*list, slots, {}, Done()).ok());
  EXPECT_EQ(done_, 0);
  group->Raise(0);
  // Ten of them take tens of milliseconds.
  EXPECT_THAT(Read<uint32_t>(*value, 1), testing::ElementsAre(1023));
  EXPECT_EQ(done_, 11);
}

// A list that waits for its signal delays all later lists.
TEST_P(OrderTest, CopiesOfOtherBuffersDoNotWaitForLists) {
  auto held = Prepare(1, {WaitCommand{0}, FillCommand{{0, 0, 64}, 1}});
  auto buffer = Allocate(64);
  auto other = Allocate(64);
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  Buffer* slots[] = {buffer.get()};
  ASSERT_TRUE(device().Submit(*held, slots, {.group = group}, Done()).ok());
  const std::string bytes(64, 'a');
  std::string back(64, ' ');
  std::promise<absl::Status> written, read;
  EXPECT_EQ(device().StartCopyToDevice(*other, 0, bytes,
                                       [&](const absl::Status& s) { written.set_value(s); }),
            absl::OkStatus());
  EXPECT_EQ(written.get_future().get(), absl::OkStatus());
  EXPECT_EQ(device().StartCopyToHost(*other, 0, absl::MakeSpan(back),
                                     [&](const absl::Status& s) { read.set_value(s); }),
            absl::OkStatus());
  EXPECT_EQ(read.get_future().get(), absl::OkStatus());
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(done_, 0);
  group->Raise(0);
  EXPECT_TRUE(device().Synchronize().ok());
  EXPECT_EQ(done_, 1);
}

TEST_P(OrderTest, ListsSeeWhatWasBeingCopiedBeforeThem) {
  constexpr int64_t kBytes = 4 << 20;
  auto copy = Prepare(2, {CopyCommand{{0, 0, kBytes}, {1, 0, kBytes}}});
  auto from = Allocate(kBytes);
  auto to = Allocate(kBytes);
  Buffer* slots[] = {from.get(), to.get()};
  for (const char value : {1, 2, 3}) {
    const std::string bytes(kBytes, value);
    std::atomic<int> copied = 0;
    // In two pieces; the second must be waited for, too.
    for (const int64_t offset : {int64_t{0}, kBytes / 2}) {
      ASSERT_TRUE(device()
                      .StartCopyToDevice(*from, offset,
                                         absl::MakeSpan(bytes).subspan(offset, kBytes / 2),
                                         [&](const absl::Status& s) { copied += s.ok() ? 1 : 0; })
                      .ok());
    }
    ASSERT_TRUE(device().Submit(*copy, slots, {}, Done()).ok());
    // Does not use Each: a matcher that describes four million bytes takes seconds.
    const std::vector<char> read = Read<char>(*to, kBytes);
    EXPECT_EQ(absl::c_count(read, value), kBytes);
    EXPECT_EQ(copied, 2);
  }
}

TEST_P(OrderTest, ManySmallKernelsKeepTheirOrder) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().step);
  auto list = Prepare(1, std::vector<Command>(100, LaunchCommand{kernel.get(), {{0, 0, 4}}}));
  auto value = Allocate(4);
  Write(*value, std::vector<uint32_t>{1});
  Buffer* slots[] = {value.get()};
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(device().Submit(*list, slots, {}, Done()).ok());
  uint32_t want = 1;
  for (int i = 0; i < 2000; ++i) want = 5 * want + 7;
  EXPECT_THAT(Read<uint32_t>(*value, 1), testing::ElementsAre(want));
}

// Holds no matter how a driver enqueues the kernels of a list that it already knows.
TEST_P(OrderTest, ARunsSecondsAreThoseOfItsKernels) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().slow);
  auto list = Prepare(1, std::vector<Command>(4, LaunchCommand{kernel.get(), {{0, 0, 4}}}));
  auto value = Allocate(4);
  for (int i = 0; i < 4; ++i) {
    const SubmitResult result = Run(*list, {value.get()});
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_GT(result.seconds, 1e-3) << i;  // each kernel takes some milliseconds
  }
  const SubmitResult timed = Run(*list, {value.get()}, {.time_commands = true, .group = nullptr});
  ASSERT_EQ(timed.command_seconds.size(), 4u);
  for (const double seconds : timed.command_seconds) EXPECT_GT(seconds, 0.25e-3);
}

// Alternates serial and shared kernels, each of which reads what the previous one wrote.
TEST_P(OrderTest, SharedKernelsSeeEachOther) {
  KILN_REQUIRE(Feature::kKernels);
  const TestKernels all = kernels();
  auto saxpy = Load(all.saxpy);
  const int64_t bytes = kGrid * 4;
  std::vector<Command> commands;
  for (int i = 0; i < 10; ++i) {
    commands.push_back(LaunchCommand{saxpy.get(), {{0, 0, bytes}, {1, 0, bytes}, {2, 0, bytes}}});
    commands.push_back(CopyCommand{{2, 0, bytes}, {0, 0, bytes}});
  }
  auto list = Prepare(3, commands);
  auto x = Allocate(bytes);
  auto y = Allocate(bytes);
  auto out = Allocate(bytes);
  Write(*y, std::vector<float>(kGrid, 1.0f));
  for (int round = 0; round < 5; ++round) {
    Write(*x, std::vector<float>(kGrid, 0.0f));
    ASSERT_TRUE(Run(*list, {x.get(), y.get(), out.get()}).status.ok());
    EXPECT_THAT(Read<float>(*out, kGrid), Each(1023.0f));
  }
}

TEST_P(OrderTest, ThreadsSubmitAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  auto fill = Prepare(1, {FillCommand{{0, 0, 64}, 5}});
  auto copy = Prepare(2, {CopyCommand{{0, 0, 64}, {1, 0, 64}}});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        auto a = Allocate(64);
        auto b = Allocate(64);
        Buffer* one[] = {a.get()};
        Buffer* two[] = {a.get(), b.get()};
        EXPECT_TRUE(device().Submit(*fill, one, {}, Done()).ok());
        EXPECT_TRUE(device().Submit(*copy, two, {}, Done()).ok());
        EXPECT_THAT(Read<uint8_t>(*b, 64), Each(5));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done_, kThreads * kEach * 2);
}

TEST_P(OrderTest, DoneMaySubmit) {
  auto list = Prepare(1, {FillCommand{{0, 0, 64}, 3}});
  auto buffer = Allocate(64);
  Buffer* slots[] = {buffer.get()};
  std::atomic<bool> second = false;
  ASSERT_TRUE(
      device()
          .Submit(
              *list, slots, {},
              [&](SubmitResult) {
                EXPECT_TRUE(
                    device().Submit(*list, slots, {}, [&](SubmitResult) { second = true; }).ok());
              })
          .ok());
  while (!second) std::this_thread::yield();
  EXPECT_TRUE(device().Synchronize().ok());
}

TEST_P(OrderTest, WaitsWithoutGroupAreRefused) {
  auto list = Prepare(0, {WaitCommand{0}});
  absl::Status status = device().Submit(*list, {}, {}, [](SubmitResult) { ADD_FAILURE(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("group"));
}

TEST_P(OrderTest, SignalsReachTheSameGroupOnly) {
  auto signal = Prepare(0, {SignalCommand{3}});
  auto wait = Prepare(0, {WaitCommand{3}});
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  EXPECT_TRUE(Run(*signal, {}, {.group = group}).status.ok());
  EXPECT_TRUE(Run(*wait, {}, {.group = group}).status.ok());
  auto other = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  other->Abort(absl::CancelledError("nobody will signal"));
  EXPECT_EQ(Run(*wait, {}, {.group = other}).status.code(), absl::StatusCode::kCancelled);
}

TEST_P(OrderTest, AnAbortedListStopsThere) {
  auto list = Prepare(1, {FillCommand{{0, 0, 64}, 1}, SignalCommand{1}, WaitCommand{0},
                          FillCommand{{0, 0, 64}, 2}});
  auto buffer = Allocate(64);
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  std::thread aborter([&] {
    EXPECT_TRUE(group->Wait(1).ok());
    group->Abort(absl::CancelledError("the other half failed"));
  });
  EXPECT_EQ(Run(*list, {buffer.get()}, {.group = group}).status.code(),
            absl::StatusCode::kCancelled);
  aborter.join();
  EXPECT_THAT(Read<uint8_t>(*buffer, 64), Each(1));
}

// Reuses the same signals: what one run raised, the next run waits for again.
TEST_P(OrderTest, SignalsServeRunAfterRun) {
  auto signals = std::make_shared<Signals>(1);
  auto signal = Prepare(0, {SignalCommand{0}});
  auto wait = Prepare(0, {WaitCommand{0}});
  for (int i = 0; i < 100; ++i) {
    auto group = std::make_shared<SignalGroup>(signals);
    ASSERT_TRUE(Run(*signal, {}, {.group = group}).status.ok());
    ASSERT_TRUE(Run(*wait, {}, {.group = group}).status.ok());
  }
  auto given_up = std::make_shared<SignalGroup>(signals);
  given_up->Abort(absl::CancelledError("nobody will signal"));
  EXPECT_EQ(Run(*wait, {}, {.group = given_up}).status.code(), absl::StatusCode::kCancelled);
  auto next = std::make_shared<SignalGroup>(signals);
  EXPECT_TRUE(Run(*signal, {}, {.group = next}).status.ok());
  EXPECT_TRUE(Run(*wait, {}, {.group = next}).status.ok());
}

TEST_P(OrderTest, GroupsHaveAsManySignalsAsListsName) {
  auto wait = Prepare(0, {WaitCommand{4}});
  const absl::Status status = device().Submit(
      *wait, {}, {.group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4))},
      [](SubmitResult) { ADD_FAILURE(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("5 signals"));
}

TEST_P(OrderTest, DestroyingADeviceRunsWhatIsLeft) {
  std::string why_none;
  auto devices = *GetParam().make()->Enumerate(&why_none);
  std::atomic<int> done = 0;
  auto list = *devices[0]->Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto buffer = *devices[0]->Allocate(64);
  Buffer* slots[] = {buffer.get()};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(devices[0]->Submit(*list, slots, {}, [&done](SubmitResult) { ++done; }).ok());
  }
  devices.clear();
  EXPECT_EQ(done, 100);
}

TEST_P(OrderTest, IdleDevicesComeAndGo) {
  for (int i = 0; i < 20; ++i) {
    std::string why_none;
    auto devices = GetParam().make()->Enumerate(&why_none);
    ASSERT_TRUE(devices.ok());
    EXPECT_FALSE(devices->empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, OrderTest, testing::ValuesIn(AllDriverCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::conformance
