#include "drivers/cpu/prepared_list.h"

#include <array>
#include <memory>
#include <vector>

#include "drivers/cpu/execution.h"
#include "gtest/gtest.h"

namespace kiln::drivers::cpu {
namespace {

TEST(PreparedListTest, AReplaySetsThePointersOfOtherBuffersAlone) {
  constexpr int kCommands = 1000;
  constexpr int kSlots = 40;
  CommandList list{.num_slots = kSlots, .commands = {}};
  for (int i = 0; i < kCommands; ++i)
    list.commands.emplace_back(FillCommand{{i % kSlots, 64, 64}, static_cast<uint8_t>(i % kSlots)});
  const auto program = Program::Make(list, {});
  ASSERT_TRUE(program.ok()) << program.status();
  WorkerPool pool({.name = "test"});
  std::vector<std::array<char, 128>> buffers(3 * kSlots / 2);
  std::vector<char*> slots;
  for (int i = 0; i < kSlots; ++i) slots.push_back(buffers[i].data());
  const auto set_by_run = [&] {
    const int64_t before = (*program)->pointers_set();
    const SubmitOptions options;
    Execution execution(**program, slots, options, pool);
    execution.Finish();
    EXPECT_TRUE(execution.result().status.ok());
    return (*program)->pointers_set() - before;
  };
  EXPECT_EQ(set_by_run(), kCommands);
  EXPECT_EQ(set_by_run(), 0);
  for (int i = 0; i < kSlots / 2; ++i) slots[2 * i] = buffers[kSlots + i].data();
  EXPECT_EQ(set_by_run(), kCommands / 2);
  for (int i = 0; i < kSlots / 2; ++i) {
    EXPECT_EQ(buffers[kSlots + i][64], 2 * i);
    EXPECT_EQ(buffers[kSlots + i][63], 0);
  }
}

// A list of three fills, which writes over its inputs from the second one on.
class CommitTest : public ::testing::Test {
 protected:
  static constexpr int kFills = 3;

  CommitTest() {
    CommandList list{.num_slots = 1, .commands = {}};
    for (int i = 0; i < kFills; ++i)
      list.commands.emplace_back(FillCommand{{0, i * 64, 64}, static_cast<uint8_t>(1)});
    program_ = *Program::Make(list, {});
    options_.commit = 1;
    options_.begin_commit = [this] {
      filled_before_ = Filled();
      ++asked_;
      return answer_;
    };
  }
  SubmitResult Run() {
    char* const slots[] = {buffer_.data()};
    Execution execution(*program_, slots, options_, pool_);
    execution.Finish();
    return execution.result();
  }
  int Filled() const { return buffer_[0] + buffer_[64] + buffer_[128]; }

  std::array<char, 64 * kFills> buffer_ = {};
  WorkerPool pool_{{.name = "test"}};
  std::shared_ptr<Program> program_;
  SubmitOptions options_;
  absl::Status answer_;
  int asked_ = 0;
  int filled_before_ = -1;
};

TEST_F(CommitTest, BeginsBeforeItsCommand) {
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(filled_before_, 1);
  EXPECT_EQ(Filled(), 3);
}

TEST_F(CommitTest, WithoutItTheListEnds) {
  answer_ = absl::CancelledError("no");
  EXPECT_EQ(Run().status, answer_);
  EXPECT_EQ(Filled(), 1);
}

TEST_F(CommitTest, TheRestOfAListHasCommitted) {
  options_.begin = {.command = 2};
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(Filled(), 1);
}

TEST_F(CommitTest, AListThatEndsEarlyMayBeAskedAgain) {
  options_.goes_on = [](double) { return false; };
  SubmitResult result = Run();
  while (result.status.ok() && result.rest.has_value()) {
    options_.begin = *result.rest;
    options_.goes_on = nullptr;
    result = Run();
  }
  EXPECT_TRUE(result.status.ok());
  EXPECT_GE(asked_, 1);
  EXPECT_EQ(Filled(), 3);
}

}  // namespace
}  // namespace kiln::drivers::cpu
