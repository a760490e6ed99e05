// Several devices in one group of submissions: they wait for each other and exchange data.
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "drivers/common/host_buffer.h"
#include "tests/conformance/fixture.h"

namespace kiln::conformance {
namespace {

using testing::Each;

class DevicesTest : public ConformanceTest {
 protected:
  // Counts results.
  std::function<void(SubmitResult)> Done() {
    return [this](const SubmitResult& result) {
      EXPECT_TRUE(result.status.ok()) << result.status;
      ++done_;
    };
  }
  std::atomic<int> done_ = 0;
};

// Device 1 waits for device 0, which then waits for device 1.
TEST_P(DevicesTest, DevicesWaitForEachOther) {
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
    // Alternates which side is submitted first.
    ASSERT_TRUE((i % 2 == 0 ? submit_second() : submit_first()).ok());
    ASSERT_TRUE((i % 2 == 0 ? submit_first() : submit_second()).ok());
    ASSERT_THAT(Read<uint8_t>(*shared, 4096, 0), Each(2));
    ASSERT_THAT(Read<uint8_t>(*back, 4096, 1), Each(1));
  }
  EXPECT_EQ(done_, 200);
}

// Each device gives the other its data, in both directions at once, run after run, whether or not
// they can access each other's memory.
TEST_P(DevicesTest, DevicesExchangeThroughHostMemory) {
  KILN_REQUIRE(Feature::kTwoDevices);
  constexpr int64_t kBytes = 16 << 10;
  // Slots: the device's data, the received data, the host's memory. The first half is transferred
  // before the second.
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
    auto list =
        device(self).Prepare({.num_slots = 3, .commands = std::move(commands), .host_slots = {2}});
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

// Two lists wait for each other's signals and one of them fails: the other one ends, too, and the
// devices do not hang.
TEST_P(DevicesTest, AMemberThatFailsHoldsUpNoOther) {
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

INSTANTIATE_TEST_SUITE_P(All, DevicesTest, testing::ValuesIn(AllDriverCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::conformance
