// Tests that kernels stay within the target's limits on locals and arguments, whichever pass
// combined them.
#include "compiler/partition/testing/fixture.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

class LimitsTest : public PartitionFixture {
 protected:
  void ExpectWithinLimits(const Partition& partition) {
    for (const Group& group : partition.groups) {
      int64_t bytes = 0;
      for (const Local& local : group.locals) bytes += local.elements * ir::SizeOf(local.dtype);
      EXPECT_LE(bytes, 2 * target_.limits.local_bytes_max);
      EXPECT_LE(group.reads.size() + group.writes.size() + group.updates.size(),
                static_cast<size_t>(target_.limits.arguments_max));
    }
  }

  // Sums of rows, each used with the sum of all: one row of each is kept between the two.
  std::vector<Node> RowsDividedByTheirSum(int count) {
    std::vector<Node> rows;
    Node all = nullptr;
    for (int i = 0; i < count; ++i) {
      rows.push_back(b_.Sum(Input({32, 4, 256}), {1}));
      all = all == nullptr ? rows.back() : b_.Add(all, rows.back());
    }
    Node total = b_.Expand(b_.Sum(all, {1}, true), {32, 256});
    for (Node& row : rows) row = b_.Mul(row, total);
    return rows;
  }
};

TEST_F(LimitsTest, ATasksLocalsFit) {
  target_.limits.local_bytes_max = 4 << 10;
  const std::vector<Node> rows = RowsDividedByTheirSum(12);
  ExpectWithinLimits(Fused(rows));
}

TEST_F(LimitsTest, SmallWorkThatSharesAKernelFitsOneTask) {
  target_.limits.local_bytes_max = 512;
  std::vector<Node> outputs;
  for (int i = 0; i < 8; ++i) {
    Node sums = b_.Sum(Input({8, 100}), {0}, true);
    outputs.push_back(b_.Mul(sums, b_.Expand(b_.Sum(sums, {1}, true), {1, 100})));
  }
  const Partition partition = Fused(outputs);
  ExpectWithinLimits(partition);
  EXPECT_LT(partition.groups.size(), 8u);
}

// An optimizer's updates of many small weights.
TEST_F(LimitsTest, AKernelTakesAsManyTensorsAsItMay) {
  std::vector<Node> outputs;
  for (int i = 0; i < 20; ++i) {
    Node weight = Input({64});
    Node moment = b_.Add(b_.Mul(Input({64}), 0.9), Input({64}));
    outputs.push_back(moment);
    outputs.push_back(b_.Sub(weight, b_.Mul(moment, 0.1)));
  }
  EXPECT_EQ(Fused(outputs).groups.size(), 1u);
  target_.limits.arguments_max = 16;
  const Partition partition = Fused(outputs);
  ExpectWithinLimits(partition);
  EXPECT_EQ(partition.groups.size(), 7u);
}

TEST_F(LimitsTest, OneExpressionOfManyTensorsIsCut) {
  Node sum = Input({64});
  for (int i = 0; i < 100; ++i) sum = b_.Add(sum, Input({64}));
  EXPECT_EQ(Fused({sum}).groups.size(), 1u);
  target_.limits.arguments_max = 16;
  const Partition partition = Fused({sum});
  ExpectWithinLimits(partition);
  EXPECT_GT(partition.groups.size(), 6u);
}

}  // namespace
}  // namespace kiln::partition
