#include "drivers/cpu/prepared_list.h"

#include <array>
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

}  // namespace
}  // namespace kiln::drivers::cpu
