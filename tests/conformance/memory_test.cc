// Buffers and synchronous copies.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <limits>
#include <numeric>

#include "compiler/machine_codes.h"
#include "drivers/common/host_buffer.h"
#include "tests/conformance/fixture.h"

namespace kiln::conformance {
namespace {

using testing::HasSubstr;
using MemoryTest = ConformanceTest;

TEST_P(MemoryTest, DevicesAreDescribed) {
  const drivers::DeviceInfo& info = device().info();
  // Platforms that are not to be tested may come first.
  const bool is_first = std::getenv("KILN_TEST_OPENCL_PLATFORM") == nullptr;
  EXPECT_THAT(info.name, testing::MatchesRegex(is_first ? ".+:0" : ".+:[0-9]+"));
  EXPECT_FALSE(info.model.empty());
  printf("%s is %s, %s\n", GetParam().name.c_str(), info.name.c_str(), info.model.c_str());
  EXPECT_TRUE(compiler::FindMachineCode(info.target.architecture).ok());
  EXPECT_GE(info.target.limits.compute_units, 1);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_TRUE(device().Health().ok());
}

TEST_P(MemoryTest, BuffersAreAlignedAndApart) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int64_t bytes : {0, 1, 63, 64, 65, 1000, 4096, 100000, 3 << 20}) {
    buffers.push_back(Allocate(bytes));
    ASSERT_NE(buffers.back(), nullptr);
    EXPECT_EQ(buffers.back()->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.back()->host_pointer()) % 64, 0u);
    Write(*buffers.back(), std::vector<uint8_t>(bytes, buffers.size()));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t bytes = buffers[i]->bytes();
    EXPECT_EQ(Read<uint8_t>(*buffers[i], bytes), std::vector<uint8_t>(bytes, i + 1));
  }
}

TEST_P(MemoryTest, NegativeSizesAreRefused) {
  EXPECT_EQ(device().Allocate(-1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(MemoryTest, ExhaustionNamesWhatIsLeft) {
  KILN_REQUIRE(Feature::kMemoryLimit);
  const int64_t memory = device().info().memory_bytes;
  auto half = Allocate(memory / 2);
  auto refused = device().Allocate(memory / 2 + 4096);
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr(std::to_string(memory / 2 + 4096)));
  EXPECT_THAT(refused.status().message(), HasSubstr(device().info().name));
  EXPECT_THAT(refused.status().message(), HasSubstr("bytes are free"));
  half = nullptr;
  EXPECT_TRUE(device().Allocate(memory / 2 + 4096).ok());
}

TEST_P(MemoryTest, AbsurdSizesAreRefused) {
  for (int64_t bytes :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max() - 63}) {
    EXPECT_EQ(device().Allocate(bytes).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST_P(MemoryTest, AllMemoryComesBack) {
  KILN_REQUIRE(Feature::kMemoryLimit);
  const int64_t memory = device().info().memory_bytes;
  for (int64_t piece : {memory / 64, memory / 7, memory / 2, memory / 1000}) {
    std::vector<std::unique_ptr<Buffer>> buffers;
    while (true) {
      auto buffer = device().Allocate(piece);
      if (!buffer.ok()) break;
      buffers.push_back(*std::move(buffer));
    }
    // Rounding may waste an eighth.
    EXPECT_GE(static_cast<int64_t>(buffers.size()) * piece, memory * 3 / 4)
        << "in pieces of " << piece;
    EXPECT_LE(static_cast<int64_t>(buffers.size()) * piece, memory);
  }
  EXPECT_TRUE(device().Allocate(memory / 16 * 15).ok());
}

TEST_P(MemoryTest, CopiesPartsOfBuffers) {
  auto buffer = Allocate(1000);
  Write(*buffer, std::vector<uint8_t>(1000, 7));
  std::vector<char> part(100);
  std::iota(part.begin(), part.end(), 0);
  ASSERT_TRUE(device().CopyToDevice(*buffer, 333, part).ok());
  std::vector<char> back(102);
  ASSERT_TRUE(device().CopyToHost(*buffer, 332, absl::MakeSpan(back)).ok());
  EXPECT_EQ(back.front(), 7);
  EXPECT_EQ(back.back(), 7);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), back.begin() + 1));
}

TEST_P(MemoryTest, ADeviceThatIsNotLostKeepsWhatItHas) {
  auto buffer = Allocate(1000);
  Write(*buffer, std::vector<uint8_t>(1000, 7));
  EXPECT_EQ(device().Revive(), absl::OkStatus());
  EXPECT_EQ(Read<uint8_t>(*buffer, 1000), std::vector<uint8_t>(1000, 7));
}

TEST_P(MemoryTest, CopiesOutOfRangeAreRefused) {
  auto buffer = Allocate(100);
  std::vector<char> bytes(101);
  for (int64_t offset :
       {int64_t{0}, int64_t{-1}, int64_t{100}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(device().CopyToDevice(*buffer, offset, bytes).code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(device().CopyToHost(*buffer, offset, absl::MakeSpan(bytes)).code(),
              absl::StatusCode::kOutOfRange);
  }
  EXPECT_TRUE(device().CopyToDevice(*buffer, 100, {}).ok());
}

INSTANTIATE_TEST_SUITE_P(All, MemoryTest, testing::ValuesIn(AllDriverCases()),
                         [](const auto& info) { return info.param.name; });

// Copies from one buffer to another through host memory, in another list.
TEST_P(MemoryTest, ListsCopyThroughHostMemory) {
  auto from = Allocate(4096);
  auto to = Allocate(4096);
  auto host = drivers::HostBuffer::Make(8192);
  auto out = device().Prepare({.num_slots = 2,
                               .commands = {CopyCommand{{0, 0, 4096}, {1, 4096, 4096}}},
                               .host_slots = {1}});
  auto in = device().Prepare({.num_slots = 2,
                              .commands = {CopyCommand{{1, 4096, 4096}, {0, 0, 4096}}},
                              .host_slots = {1}});
  ASSERT_TRUE(out.ok() && in.ok()) << out.status() << in.status();
  // A mirror, if there is one, has the size of what is copied.
  EXPECT_THAT((*out)->host_bytes(), testing::AnyOf(0, 4096));
  for (uint8_t value = 1; value <= 5; ++value) {
    Write(*from, std::vector<uint8_t>(4096, value));
    ASSERT_TRUE(Run(**out, {from.get(), host.get()}).status.ok());
    EXPECT_EQ(static_cast<const char*>(host->host_pointer())[4096], value);
    ASSERT_TRUE(Run(**in, {to.get(), host.get()}).status.ok());
    EXPECT_THAT(Read<uint8_t>(*to, 4096), testing::Each(value));
  }
}

// Also from host memory to host memory, and with nothing to copy, several times before the first
// run has completed.
TEST_P(MemoryTest, ListsThatCopyThroughHostMemoryQueueUp) {
  constexpr int kRuns = 6;
  auto own = Allocate(128);
  auto from = drivers::HostBuffer::Make(128);
  auto to = drivers::HostBuffer::Make(192);
  auto list = device().Prepare(
      {.num_slots = 3,
       .commands = {CopyCommand{{1, 0, 64}, {2, 128, 64}}, CopyCommand{{1, 0, 64}, {1, 64, 64}},
                    CopyCommand{{0, 0, 0}, {1, 0, 0}}, SignalCommand{0}, SignalCommand{1},
                    WaitCommand{0}, WaitCommand{1}, CopyCommand{{2, 128, 64}, {0, 0, 64}},
                    CopyCommand{{1, 64, 64}, {0, 64, 64}}, CopyCommand{{0, 0, 128}, {2, 0, 128}}},
       .host_slots = {1, 2}});
  ASSERT_TRUE(list.ok()) << list.status();
  Buffer* slots[] = {own.get(), from.get(), to.get()};
  auto* const read = static_cast<char*>(from->host_pointer());
  const auto* const written = static_cast<const uint8_t*>(to->host_pointer());
  for (uint8_t value = 1; value <= 10; ++value) {
    std::fill_n(read, 64, static_cast<char>(value));
    std::array<std::promise<SubmitResult>, kRuns> ends;
    for (auto& end : ends) {
      SubmitOptions options{.time_commands = value % 2 == 0,
                            .group = std::make_shared<SignalGroup>(std::make_shared<Signals>(2))};
      ASSERT_TRUE(device()
                      .Submit(**list, slots, std::move(options),
                              [&end](SubmitResult result) { end.set_value(std::move(result)); })
                      .ok());
    }
    for (auto& end : ends) {
      const SubmitResult result = end.get_future().get();
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(result.command_seconds.size(), value % 2 == 0 ? 10 : 0);
    }
    EXPECT_THAT(std::vector<uint8_t>(written, written + 192), testing::Each(value));
  }
}

// If a list copies through a mirror, one slot's changes would not be seen in the other.
TEST_P(MemoryTest, HostMemoryStandsInOneSlot) {
  auto from = Allocate(64);
  auto to = Allocate(64);
  auto host = drivers::HostBuffer::Make(64);
  auto list = device().Prepare(
      {.num_slots = 4,
       .commands = {CopyCommand{{0, 0, 64}, {1, 0, 64}}, CopyCommand{{2, 0, 64}, {3, 0, 64}}},
       .host_slots = {1, 2}});
  ASSERT_TRUE(list.ok()) << list.status();
  Buffer* slots[] = {from.get(), host.get(), host.get(), to.get()};
  const absl::Status status =
      device().Submit(**list, slots, {}, [](const SubmitResult&) { ADD_FAILURE() << "it ran"; });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("slots 1 and 2 are the same host memory"));
}

TEST_P(MemoryTest, HostMemoryIsForCopiesAlone) {
  const auto fill = device().Prepare(
      {.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}, .host_slots = {0}});
  EXPECT_EQ(fill.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(fill.status().message(), testing::HasSubstr("host memory"));
  const auto none = device().Prepare({.num_slots = 1, .commands = {}, .host_slots = {1}});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(MemoryTest, ADeviceReachesItsOwnBuffers) {
  EXPECT_TRUE(device().CanReach(*Allocate(64)));
  KILN_REQUIRE(Feature::kPeers);
  EXPECT_TRUE(device(1).CanReach(*Allocate(64, 0)));
}

}  // namespace
}  // namespace kiln::conformance
