#include "compiler/partition/normalize/shrink_contraction.h"

#include "compiler/partition/testing/fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using ::testing::SizeIs;

class ShrinkContractionTest : public PartitionFixture {
 protected:
  // Returns the number of computed products.
  static int64_t Work(const Partition& partition) {
    int64_t work = 0;
    for (const Group& group : partition.groups) {
      for (const Stage& stage : group.stages) {
        if (stage.reduce_loops.empty()) continue;
        int64_t points = 1;
        for (const int loop : stage.loops) points *= group.loops[loop];
        for (const int loop : stage.reduce_loops) points *= group.loops[loop];
        work += points;
      }
    }
    return work;
  }
};

TEST_F(ShrinkContractionTest, APartComputesThePart) {
  Node part = b_.Shrink(Product(64, 32, 48), {8, 24, 0, 40});
  const Partition partition = Fused({b_.Mul(part, 2)});
  EXPECT_THAT(partition.groups, SizeIs(1));
  EXPECT_EQ(Work(partition), 16 * 40 * 32);
}

TEST_F(ShrinkContractionTest, ThroughReshapesByOnesAlone) {
  Node wide = b_.Reshape(b_.Reshape(Product(64, 32, 48), {1, 64, 1, 48}), {64, 48, 1});
  EXPECT_EQ(Work(Fused({b_.Shrink(wide, {8, 24, 0, 40, 0, 1})})), 16 * 40 * 32);
  Node flat = b_.Reshape(Product(64, 32, 48), {64 * 48});
  EXPECT_EQ(Work(Fused({b_.Shrink(flat, {0, 100})})), 64 * 48 * 32);
}

TEST_F(ShrinkContractionTest, WhatIsUsedWholeIsComputedOnce) {
  Node whole = Product(64, 32, 48);
  EXPECT_EQ(Work(Fused({whole, b_.Shrink(whole, {8, 24, 0, 40})})), 64 * 48 * 32);
}

TEST_F(ShrinkContractionTest, WhatHasTwoPartsIsComputedOnce) {
  Node whole = b_.Reshape(Product(64, 32, 48), {64, 1, 48});
  Node left = b_.Shrink(whole, {0, 64, 0, 1, 0, 8});
  Node right = b_.Shrink(whole, {0, 64, 0, 1, 40, 48});
  EXPECT_EQ(Work(Fused({left, right})), 64 * 48 * 32);
}

// The gradient of a padded convolution.
TEST_F(ShrinkContractionTest, BehindWindowsThatAreUndone) {
  Node gradient = b_.Expand(b_.Reshape(Input({8, 10, 1, 1}), {8, 1, 10, 1}), {8, 16, 10, 3});
  Node weights = b_.Expand(b_.Reshape(Input({8, 16, 3}), {8, 16, 1, 3}), {8, 16, 10, 3});
  Node undone = b_.Unwindow(b_.Sum(b_.Mul(gradient, weights), {0}), 1, 12, 1, 1);
  Node whole = b_.Sum(undone, {2});
  EXPECT_EQ(Work(Fused({b_.Shrink(whole, {0, 16, 1, 11})})), 8 * 3 * 16 * 10);
}

}  // namespace
}  // namespace kiln::partition
