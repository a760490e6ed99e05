#include "drivers/common/queued_device/host_mirror.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "drivers/common/host_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::drivers {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

CopyCommand Copied(SlotRange from, SlotRange to) { return {from, to}; }

const SlotRange& From(const CommandList& list, size_t command) {
  return std::get<CopyCommand>(list.commands[command]).source;
}
const SlotRange& To(const CommandList& list, size_t command) {
  return std::get<CopyCommand>(list.commands[command]).destination;
}

// A device with its own memory, "slot 0", and a mirror that its copies use.
class Device {
 public:
  explicit Device(CommandList list) : list_(std::move(list)), mirror_(&list_) {
    memory_.resize(mirror_.bytes());
    mirror_.Place(memory_.data());
    seconds_.resize(list_.commands.size());
  }

  void Run(HostBuffer& host) {
    Buffer* const buffers[] = {nullptr, &host};
    SteadyTime time;
    const SteadyClock now = [&time] { return time += std::chrono::seconds(1); };
    const HostMirror::Run run{buffers, now, &seconds_};
    const auto await = [this] {
      ++awaited_;
      return absl::OkStatus();
    };
    size_t part = 0;
    EXPECT_TRUE(mirror_.Before(part, run, await).ok());
    for (const Command& command : list_.commands) {
      if (const auto* copy = std::get_if<CopyCommand>(&command); copy != nullptr) {
        std::memcpy(At(copy->destination), At(copy->source),
                    static_cast<size_t>(copy->source.bytes));
        continue;
      }
      EXPECT_TRUE(mirror_.After(part, run, await).ok());
      if (std::holds_alternative<WaitCommand>(command)) others_(host);
      EXPECT_TRUE(mirror_.Before(++part, run, await).ok());
    }
    EXPECT_TRUE(mirror_.After(part, run, await).ok());
  }

  CommandList list_;
  HostMirror mirror_;
  std::string own_ = std::string(512, '.');
  std::vector<char> memory_;
  std::vector<double> seconds_;
  int awaited_ = 0;
  // Work of other devices before a wait ends.
  std::function<void(HostBuffer&)> others_ = [](HostBuffer&) {};

 private:
  char* At(const SlotRange& range) {
    return (range.slot == 0 ? own_.data() : mirror_.slot(range.slot)) + range.offset;
  }
};

void Set(HostBuffer& host, int64_t offset, char value) {
  std::memset(static_cast<char*>(host.host_pointer()) + offset, value, 64);
}
char At(const HostBuffer& host, int64_t offset) {
  return static_cast<const char*>(host.host_pointer())[offset];
}

TEST(HostMirror, AListWithoutHostSlotsHasNone) {
  CommandList list = {.num_slots = 2, .commands = {Copied({0, 0, 64}, {1, 128, 64})}};
  EXPECT_EQ(HostMirror(&list).bytes(), 0);
  EXPECT_EQ(To(list, 0).offset, 128);
}

// Only the used parts of a large slot are mirrored; overlapping parts stay together.
TEST(HostMirror, HoldsWhatIsCopied) {
  CommandList list = {
      .num_slots = 2,
      .commands = {Copied({1, 1 << 20, 128}, {0, 0, 128}), Copied({0, 0, 64}, {1, 1 << 30, 64}),
                   Copied({1, (1 << 20) + 64, 192}, {0, 0, 192}),
                   Copied({1, (1 << 20) + 320, 64}, {0, 0, 64}), Copied({0, 0, 0}, {1, 0, 0})},
      .host_slots = {1}};
  const HostMirror mirror(&list);
  EXPECT_EQ(mirror.bytes(), 256 + 64 + 64);
  EXPECT_EQ(From(list, 2).offset - From(list, 0).offset, 64);
  EXPECT_THAT(
      std::vector<int64_t>({From(list, 0).offset, From(list, 3).offset, To(list, 1).offset}),
      ElementsAre(0, 256, 320));
}

TEST(HostMirror, WhatAPartReadsIsWhatWasThereWhenItBegan) {
  auto host = HostBuffer::Make(1024);
  Device device({.num_slots = 2,
                 .commands = {Copied({1, 512, 64}, {0, 0, 64}), WaitCommand{0},
                              Copied({1, 512, 64}, {0, 64, 64})},
                 .host_slots = {1}});
  Set(*host, 512, 'a');
  device.others_ = [](HostBuffer& shared) { Set(shared, 512, 'b'); };
  device.Run(*host);
  EXPECT_EQ(device.own_.substr(0, 129), std::string(64, 'a') + std::string(64, 'b') + ".");
  EXPECT_EQ(device.awaited_, 2);
}

TEST(HostMirror, WhatAPartWritesIsThereBeforeItsSignal) {
  auto host = HostBuffer::Make(1024);
  Device device({.num_slots = 2,
                 .commands = {Copied({0, 0, 64}, {1, 0, 64}), SignalCommand{0}, WaitCommand{1},
                              Copied({0, 64, 64}, {1, 128, 64})},
                 .host_slots = {1}});
  device.own_ = std::string(64, 'x') + std::string(64, 'y');
  bool seen = false;
  device.others_ = [&](HostBuffer& shared) {
    seen = At(shared, 0) == 'x' && At(shared, 128) == 0;
    Set(shared, 64, 'z');
  };
  device.Run(*host);
  EXPECT_TRUE(seen);
  EXPECT_EQ(At(*host, 64), 'z') << "another's";
  EXPECT_EQ(At(*host, 128), 'y');
  EXPECT_THAT(device.seconds_, ElementsAre(DoubleNear(1, 1e-9), 0, 0, DoubleNear(1, 1e-9)));
}

TEST(HostMirror, APartReadsWhatItHasWritten) {
  auto host = HostBuffer::Make(1024);
  Device device({.num_slots = 2,
                 .commands = {Copied({0, 0, 64}, {1, 0, 64}), Copied({1, 0, 64}, {0, 64, 64})},
                 .host_slots = {1}});
  device.own_ = std::string(64, 'x') + std::string(64, '.');
  device.Run(*host);
  EXPECT_EQ(device.own_, std::string(128, 'x'));
}

TEST(HostMirror, WhatAwaitMeetsEndsTheCopies) {
  auto host = HostBuffer::Make(64);
  CommandList list = {
      .num_slots = 2, .commands = {Copied({0, 0, 64}, {1, 0, 64})}, .host_slots = {1}};
  const HostMirror mirror(&list);
  Buffer* const buffers[] = {nullptr, host.get()};
  std::vector<double> seconds;
  const SteadyClock now = [] { return SteadyTime(); };
  const absl::Status lost =
      mirror.After(0, {buffers, now, &seconds}, [] { return absl::UnavailableError("lost"); });
  EXPECT_EQ(lost.message(), "lost");
  EXPECT_EQ(At(*host, 0), 0);
}

}  // namespace
}  // namespace kiln::drivers
