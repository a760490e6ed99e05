#include "compiler/partition/normalize/split_reduction.h"

#include <utility>
#include <vector>

#include "compiler/partition/testing/fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class SplitReductionTest : public PartitionFixture {
 protected:
  // A device with 132 units of 2,048 threads.
  SplitReductionTest() {
    target_.limits.compute_units = 132;
    target_.limits.threads_per_block = 1024;
    target_.limits.threads_per_unit = 2048;
  }

  // Returns the numbers of elements that the kernels write, in order.
  std::vector<int64_t> Written(std::vector<Node> outputs) {
    const Partition partition = Fused(std::move(outputs));
    std::vector<int64_t> elements;
    for (const Group& group : partition.groups) {
      for (const int tensor : group.writes)
        elements.push_back(ir::NumElements(partition.tensors[tensor].shape));
    }
    return elements;
  }
};

TEST_F(SplitReductionTest, AContractionWithFewResultsIsSplit) {
  // One tile of 64 x 64, whose sum is cut into parts of 256 terms.
  EXPECT_THAT(Written({Product(64, 8192, 64)}), ElementsAre(32 * 64 * 64, 64 * 64));
  // 144 tiles: as many parts as give each unit two.
  EXPECT_THAT(Written({Product(768, 8192, 768)}), ElementsAre(4 * 768 * 768, 768 * 768));
}

TEST_F(SplitReductionTest, OtherContractionsAreNot) {
  EXPECT_THAT(Written({Product(2048, 8192, 2048)}), SizeIs(1)) << "enough tiles";
  EXPECT_THAT(Written({Product(64, 512, 64)}), SizeIs(1)) << "too short a sum";
  EXPECT_THAT(Written({Product(2000, 8192, 8)}), SizeIs(1)) << "a block for each result";
}

TEST_F(SplitReductionTest, WhatFollowsAContractionGoesWithTheSecondSum) {
  Node product = Product(64, 8192, 64);
  EXPECT_THAT(Written({b_.Mul(b_.Add(product, Input({64, 64})), 2)}),
              ElementsAre(32 * 64 * 64, 64 * 64));
}

TEST_F(SplitReductionTest, ASumAlongMemoryIsSplitUntilEachUnitHasBlocks) {
  EXPECT_THAT(Written({b_.Sum(Input({64, 1 << 18}), {1})}), ElementsAre(32 * 64, 64));
  EXPECT_THAT(Written({b_.Max(Input({64, 1 << 18}), {1})}), ElementsAre(32 * 64, 64));
  EXPECT_THAT(Written({b_.Sum(Input({512, 1 << 18}), {1})}), SizeIs(1)) << "a block for each";
  EXPECT_THAT(Written({b_.Sum(Input({64, 1 << 12}), {1})}), SizeIs(1)) << "little work";
}

TEST_F(SplitReductionTest, ASumAcrossMemoryIsSplitUntilThereAreThreads) {
  EXPECT_THAT(Written({b_.Sum(Input({8192, 768}), {0})}), ElementsAre(128 * 768, 768));
  EXPECT_THAT(Written({b_.Sum(Input({8192, 1 << 17}), {0})}), SizeIs(1));
}

TEST_F(SplitReductionTest, SumsOfManyPartsAreSplitAgain) {
  EXPECT_THAT(Written({b_.Sum(Input({1 << 24, 4}), {0})}), SizeIs(3));
}

TEST_F(SplitReductionTest, UnevenSumsArePadded) {
  EXPECT_THAT(Written({b_.Sum(Input({8191, 768}), {0})}), ElementsAre(63 * 768, 768));
  EXPECT_THAT(Written({Product(64, 8191, 64)}), ElementsAre(15 * 64 * 64, 64 * 64));
  // A maximum is not cut unevenly: it has no padding value.
  EXPECT_THAT(Written({b_.Max(Input({8191, 768}), {0})}), SizeIs(1));
}

// Two axes are not long enough by themselves, and the third one is a prime.
TEST_F(SplitReductionTest, ShortAxesAreCutTogether) {
  EXPECT_THAT(Written({b_.Sum(Input({7, 11, 8, 4099}), {0, 1, 3})}),
              ElementsAre(7 * 11 * 2 * 8, 8));
}

// The cuts for CPU cores, which must not change because of other machines.
TEST_F(SplitReductionTest, CoresSplitSumsWithFewResultsAlone) {
  target_ = drivers::Target();
  EXPECT_THAT(Written({Product(64, 8192, 64)}), SizeIs(1));
  EXPECT_THAT(Written({b_.Sum(Input({64, 1 << 18}), {1})}), SizeIs(1));
  EXPECT_THAT(Written({b_.Sum(Input({8, 1 << 18}), {1})}), ElementsAre(1024 * 8, 8));
  EXPECT_THAT(Written({b_.Sum(Input({100'003}), {0})}), SizeIs(1)) << "a prime";
}

TEST_F(SplitReductionTest, RowsShareAKernelOnlyIfThereAreEnough) {
  const auto normalized = [this](int64_t rows) {
    Node x = Input({rows, 16384});
    Node sums = b_.Sum(x, {1}, /*keepdims=*/true);
    return Fused({b_.Div(x, b_.Expand(sums, x->shape()))}).groups.size();
  };
  EXPECT_EQ(normalized(512), 1);
  EXPECT_EQ(normalized(128), 3);
  target_ = drivers::Target();
  EXPECT_EQ(normalized(128), 1);
}

}  // namespace
}  // namespace kiln::partition
