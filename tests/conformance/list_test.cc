// Command lists without kernels: copies, fills, replays, checks, timing.
#include <limits>

#include "tests/conformance/fixture.h"

namespace kiln::conformance {
namespace {

using testing::Each;
using testing::HasSubstr;
using ListTest = ConformanceTest;

TEST_P(ListTest, CommandsSeeWhatCameBefore) {
  auto list = Prepare(2, {FillCommand{{0, 0, 256}, 1}, FillCommand{{0, 64, 64}, 2},
                          CopyCommand{{0, 0, 192}, {1, 64, 192}}, FillCommand{{0, 0, 256}, 9}});
  auto a = Allocate(256);
  auto b = Allocate(256);
  Write(*b, std::vector<uint8_t>(256, 0));
  ASSERT_TRUE(Run(*list, {a.get(), b.get()}).status.ok());
  EXPECT_THAT(Read<uint8_t>(*a, 256), Each(9));
  const auto bytes = Read<uint8_t>(*b, 256);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(bytes[i], i < 64 ? 0 : i >= 128 && i < 192 ? 2 : 1) << i;
}

TEST_P(ListTest, ReplaysWithOtherBuffers) {
  auto list = Prepare(2, {CopyCommand{{0, 0, 1024}, {1, 0, 1024}}});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 10; ++i) {
    buffers.push_back(Allocate(1024 + 64 * i));
    Write(*buffers.back(), std::vector<uint8_t>(1024, i));
  }
  for (int i = 1; i < 10; ++i)
    ASSERT_TRUE(Run(*list, {buffers[i - 1].get(), buffers[i].get()}).status.ok());
  for (const auto& buffer : buffers) EXPECT_THAT(Read<uint8_t>(*buffer, 1024), Each(0));
}

TEST_P(ListTest, LargeCopiesAndFillsAreWhole) {
  const int64_t bytes = (5 << 20) + 64;
  auto list =
      Prepare(2, {FillCommand{{0, 0, bytes}, 77}, CopyCommand{{0, 0, bytes}, {1, 0, bytes}}});
  auto a = Allocate(bytes);
  auto b = Allocate(bytes);
  ASSERT_TRUE(Run(*list, {a.get(), b.get()}).status.ok());
  EXPECT_EQ(Read<uint8_t>(*a, bytes), std::vector<uint8_t>(bytes, 77));
  EXPECT_EQ(Read<uint8_t>(*b, bytes), std::vector<uint8_t>(bytes, 77));
}

TEST_P(ListTest, EmptyListsAndRangesAreFine) {
  auto nothing = Prepare(0, {});
  EXPECT_TRUE(Run(*nothing, {}).status.ok());
  auto empty = Prepare(2, {FillCommand{{0, 0, 0}, 1}, CopyCommand{{0, 0, 0}, {1, 0, 0}}});
  auto a = Allocate(0);
  auto b = Allocate(0);
  EXPECT_TRUE(Run(*empty, {a.get(), b.get()}).status.ok());
}

TEST_P(ListTest, TimesCommandsWhenAsked) {
  const int64_t bytes = 4 << 20;
  auto list = Prepare(1, {FillCommand{{0, 0, bytes}, 1}, FillCommand{{0, 0, 64}, 2}});
  auto buffer = Allocate(bytes);
  const SubmitResult timed = Run(*list, {buffer.get()}, {.time_commands = true, .group = nullptr});
  ASSERT_EQ(timed.command_seconds.size(), 2u);
  EXPECT_GT(timed.command_seconds[0], 0);
  EXPECT_GE(timed.command_seconds[1], 0);
  EXPECT_GE(timed.seconds * 1.01 + 1e-6, timed.command_seconds[0] + timed.command_seconds[1]);
  const SubmitResult plain = Run(*list, {buffer.get()});
  EXPECT_TRUE(plain.command_seconds.empty());
  EXPECT_GT(plain.seconds, 0);
}

TEST_P(ListTest, MalformedListsAreRefused) {
  const int64_t int64_max = std::numeric_limits<int64_t>::max();
  const struct {
    Command command;
    std::string message;
  } cases[] = {
      {FillCommand{{2, 0, 64}, 0}, "slot 2"},
      {FillCommand{{-1, 0, 64}, 0}, "slot -1"},
      {FillCommand{{0, 32, 64}, 0}, "multiple of 64"},
      {FillCommand{{0, -64, 64}, 0}, "multiple of 64"},
      {FillCommand{{0, 0, -1}, 0}, "-1 bytes"},
      {FillCommand{{0, 64, int64_max}, 0}, "bytes at 64"},
      {CopyCommand{{0, 0, 64}, {1, 0, 128}}, "64 bytes to 128"},
      {CopyCommand{{0, 0, 128}, {0, 64, 128}}, "overlapping"},
      {LaunchCommand{nullptr, {}}, "no kernel"},
      {SignalCommand{-1}, "negative"},
      {WaitCommand{-5}, "negative"},
  };
  for (const auto& test : cases) {
    auto list =
        device().Prepare({.num_slots = 2, .commands = {FillCommand{{0, 0, 64}, 0}, test.command}});
    ASSERT_EQ(list.status().code(), absl::StatusCode::kInvalidArgument) << test.message;
    EXPECT_THAT(list.status().message(), HasSubstr(test.message));
    EXPECT_THAT(list.status().message(), HasSubstr("command 1"));
  }
  EXPECT_EQ(device().Prepare({.num_slots = -1, .commands = {}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(ListTest, WrongSlotsAreRefused) {
  auto list = Prepare(2, {FillCommand{{0, 0, 256}, 1}, FillCommand{{1, 64, 64}, 2}});
  auto large = Allocate(256);
  auto small = Allocate(64);
  auto refused = [&](std::vector<Buffer*> slots, const std::string& message) {
    absl::Status status =
        device().Submit(*list, slots, {}, [](SubmitResult) { ADD_FAILURE() << "done was called"; });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  refused({large.get()}, "2 slots");
  refused({large.get(), large.get(), large.get()}, "2 slots");
  refused({large.get(), nullptr}, "slot 1");
  refused({large.get(), small.get()}, "slot 1 needs 128");
  refused({small.get(), large.get()}, "slot 0 needs 256");
  EXPECT_TRUE(device().Synchronize().ok());
}

// Objects that do not belong to this driver.
class ForeignList : public PreparedList {};
class ForeignBuffer : public Buffer {
 public:
  int64_t bytes() const override { return 1 << 20; }
};

TEST_P(ListTest, ForeignObjectsAreRefused) {
  ForeignList foreign_list;
  absl::Status status = device().Submit(foreign_list, {}, {}, [](SubmitResult) { ADD_FAILURE(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  auto list = Prepare(1, {FillCommand{{0, 0, 256}, 1}});
  ForeignBuffer foreign_buffer;
  Buffer* slots[] = {&foreign_buffer};
  status = device().Submit(*list, slots, {}, [](SubmitResult) { ADD_FAILURE(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device().CopyToDevice(foreign_buffer, 0, "abc").code(),
            absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(All, ListTest, testing::ValuesIn(AllDriverCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::conformance
