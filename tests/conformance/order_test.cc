// The order of submissions: on one device, from many threads, between devices.
#include <atomic>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/algorithm/container.h"
#include "drivers/common/host_buffer.h"
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
    std::vector<int> order;  // of the calls of done
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

// A list that waits for its signal holds up all lists behind it.
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
    // In two pieces, the second of which is to be waited for as well.
    for (const int64_t offset : {int64_t{0}, kBytes / 2}) {
      ASSERT_TRUE(device()
                      .StartCopyToDevice(*from, offset,
                                         absl::MakeSpan(bytes).subspan(offset, kBytes / 2),
                                         [&](const absl::Status& s) { copied += s.ok() ? 1 : 0; })
                      .ok());
    }
    ASSERT_TRUE(device().Submit(*copy, slots, {}, Done()).ok());
    // Not Each: a matcher that describes four million bytes takes seconds.
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

// However a driver enqueues the kernels of a list that it knows already.
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

// Serial and shared kernels in turn, each reading what the one before wrote.
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
  auto list = Prepare(1, {FillCommand{{0, 0, 64}, 1}, WaitCommand{0}, FillCommand{{0, 0, 64}, 2}});
  auto buffer = Allocate(64);
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  std::thread aborter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    group->Abort(absl::CancelledError("the other half failed"));
  });
  EXPECT_EQ(Run(*list, {buffer.get()}, {.group = group}).status.code(),
            absl::StatusCode::kCancelled);
  aborter.join();
  EXPECT_THAT(Read<uint8_t>(*buffer, 64), Each(1));
}

// Device 1 waits for device 0, which then waits for device 1.
TEST_P(OrderTest, DevicesWaitForEachOther) {
  KILN_REQUIRE(Feature::kPeers);
  auto shared = Allocate(4096, 0);
  auto back = Allocate(4096, 1);
  auto first = Prepare(1,
                       {FillCommand{{0, 0, 4096}, 1}, SignalCommand{0}, WaitCommand{1},
                        FillCommand{{0, 0, 4096}, 2}},
                       0);
  auto second =
      Prepare(2, {WaitCommand{0}, CopyCommand{{0, 0, 4096}, {1, 0, 4096}}, SignalCommand{1}}, 1);
  for (int i = 0; i < 100; ++i) {
    Write(*shared, std::vector<uint8_t>(4096, 0), 0);
    auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
    Buffer* one[] = {shared.get()};
    Buffer* two[] = {shared.get(), back.get()};
    auto submit_first = [&] { return device(0).Submit(*first, one, {.group = group}, Done()); };
    auto submit_second = [&] { return device(1).Submit(*second, two, {.group = group}, Done()); };
    // The waiting side first, every other time.
    ASSERT_TRUE((i % 2 == 0 ? submit_second() : submit_first()).ok());
    ASSERT_TRUE((i % 2 == 0 ? submit_first() : submit_second()).ok());
    ASSERT_THAT(Read<uint8_t>(*shared, 4096, 0), Each(2));
    ASSERT_THAT(Read<uint8_t>(*back, 4096, 1), Each(1));
  }
  EXPECT_EQ(done_, 200);
}

// Each hands the other what it has, in both directions at once, run after run; whether or not they
// reach each other.
TEST_P(OrderTest, DevicesExchangeThroughHostMemory) {
  KILN_REQUIRE(Feature::kTwoDevices);
  constexpr int64_t kBytes = 16 << 10;
  // Slots: what it has, what it gets, the host's memory. The first half travels before the second.
  const auto exchange = [&](int self, int other) {
    std::vector<Command> commands;
    for (const int64_t half : {int64_t{0}, kBytes / 2}) {
      const auto at = [&](int slot, int64_t offset) {
        return SlotRange{slot, offset + half, kBytes / 2};
      };
      const int round = half == 0 ? 0 : 2;
      commands.emplace_back(CopyCommand{at(0, 0), at(2, self * kBytes)});
      commands.emplace_back(SignalCommand{round + self});
      commands.emplace_back(WaitCommand{round + other});
      commands.emplace_back(CopyCommand{at(2, other * kBytes), at(1, 0)});
    }
    auto list = device(self).Prepare(
        {.num_slots = 3, .commands = std::move(commands), .host_slots = {2}});
    EXPECT_TRUE(list.ok()) << list.status();
    return *std::move(list);
  };
  const std::unique_ptr<PreparedList> lists[] = {exchange(0, 1), exchange(1, 0)};
  auto host = drivers::HostBuffer::Make(2 * kBytes);
  std::unique_ptr<Buffer> have[2], got[2];
  for (int i = 0; i < 2; ++i) have[i] = Allocate(kBytes, i), got[i] = Allocate(kBytes, i);
  auto signals = std::make_shared<Signals>(4);
  for (int round = 0; round < 60; ++round) {
    std::vector<uint32_t> sent[2];
    for (uint32_t i = 0; i < 2; ++i) {
      sent[i].resize(kBytes / sizeof(uint32_t));
      std::iota(sent[i].begin(), sent[i].end(), 100'000 * i + round);
      Write(*have[i], sent[i], static_cast<int>(i));
    }
    auto group = std::make_shared<SignalGroup>(signals);
    std::promise<SubmitResult> ends[2];
    for (int i = 0; i < 2; ++i) {
      const int member = (i + round) % 2;  // either is the first, in turn
      Buffer* slots[] = {have[member].get(), got[member].get(), host.get()};
      ASSERT_TRUE(device(member)
                      .Submit(*lists[member], slots,
                              {.time_commands = round % 3 == 0, .group = group},
                              [&ends, member](SubmitResult result) {
                                ends[member].set_value(std::move(result));
                              })
                      .ok());
    }
    for (int i = 0; i < 2; ++i) {
      const SubmitResult result = ends[i].get_future().get();
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(result.command_seconds.size(), round % 3 == 0 ? 8 : 0);
      ASSERT_TRUE(Read<uint32_t>(*got[i], kBytes / sizeof(uint32_t), i) == sent[1 - i])
          << "device " << i << ", round " << round;
    }
  }
}

// The same signals, without anything made anew: what one run raised, the next waits for again.
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

// Of two lists that wait for each other's signals, one fails: the other ends, too, and so does what
// comes behind it.
TEST_P(OrderTest, AMemberThatFailsHoldsUpNoOther) {
  KILN_REQUIRE(Feature::kTwoDevices);
  auto first = Prepare(0, {SignalCommand{0}, WaitCommand{1}}, 0);
  auto second = Prepare(0, {WaitCommand{2}, SignalCommand{1}, WaitCommand{0}}, 1);
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  std::promise<absl::Status> ends[2];
  const auto done = [&](int i) {
    return [&ends, i](SubmitResult result) { ends[i].set_value(result.status); };
  };
  ASSERT_TRUE(device(0).Submit(*first, {}, {.group = group}, done(0)).ok());
  ASSERT_TRUE(device(1).Submit(*second, {}, {.group = group}, done(1)).ok());
  group->Abort(absl::InternalError("one of them failed"));
  for (auto& end : ends) EXPECT_EQ(end.get_future().get().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(device(0).Synchronize().ok());
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
