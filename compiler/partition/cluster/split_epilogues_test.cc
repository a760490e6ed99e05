#include "compiler/partition/cluster/split_epilogues.h"

#include <utility>
#include <vector>

#include "compiler/partition/testing/fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using ::testing::SizeIs;

class SplitEpiloguesTest : public PartitionFixture {
 protected:
  // Like Adam: every tensor of the state is updated with the gradient, the last one with all of
  // them.
  std::vector<Node> UpdatedStates(Node gradient, int states) {
    std::vector<Node> updated;
    Node all = gradient;
    for (int i = 0; i < states; ++i) {
      updated.push_back(b_.Add(b_.Mul(Input(gradient->shape()), 0.9), all));
      all = b_.Mul(all, updated.back());
    }
    return updated;
  }

  std::vector<Group> Groups(std::vector<Node> outputs) { return Fused(std::move(outputs)).groups; }
};

TEST_F(SplitEpiloguesTest, ManyLargeStreamsAreAKernel) {
  const std::vector<Group> groups = Groups(UpdatedStates(Product(1024, 8, 1024), kStreamsMax + 1));
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[0].writes, SizeIs(1));
  EXPECT_THAT(groups[0].loops, SizeIs(3));
  EXPECT_THAT(groups[1].writes, SizeIs(kStreamsMax + 1));
  EXPECT_THAT(groups[1].reads, SizeIs(kStreamsMax + 2));
  EXPECT_THAT(groups[1].loops, SizeIs(2));
}

// Gradients under autocast: the parameters' states are float32.
TEST_F(SplitEpiloguesTest, RoundedResultsAreStoredInTheShortType) {
  Node rounded = b_.Cast(Product(1024, 8, 1024), ir::DType::kBFloat16);
  const Partition partition =
      Fused(UpdatedStates(b_.Cast(rounded, ir::DType::kFloat32), kStreamsMax + 1));
  ASSERT_THAT(partition.groups, SizeIs(2));
  ASSERT_THAT(partition.groups[0].writes, SizeIs(1));
  EXPECT_EQ(partition.tensors[partition.groups[0].writes[0]].dtype, ir::DType::kBFloat16);
  EXPECT_THAT(partition.groups[1].writes, SizeIs(kStreamsMax + 1));
}

TEST_F(SplitEpiloguesTest, FewStreamsStay) {
  EXPECT_THAT(Groups(UpdatedStates(Product(1024, 8, 1024), kStreamsMax)), SizeIs(1));
}

TEST_F(SplitEpiloguesTest, WhatCachesHoldStays) {
  EXPECT_THAT(Groups(UpdatedStates(Product(1024, 8, 1023), kStreamsMax + 1)), SizeIs(1));
}

// Its state is read by rows and by columns, and readers of the results come after them.
TEST_F(SplitEpiloguesTest, ReadersOfTheResultsComeAfterThem) {
  Node gradient = Product(1024, 8, 2048);
  std::vector<Node> outputs = UpdatedStates(gradient, kStreamsMax + 1);
  outputs.push_back(b_.Sum(b_.Mul(outputs[1], gradient), {0}));
  outputs.push_back(b_.Max(b_.Add(outputs[0], outputs[2]), {1}));
  const std::vector<Group> groups = Groups(std::move(outputs));
  EXPECT_GE(groups.size(), 3);
  EXPECT_THAT(groups[0].writes, SizeIs(1));
}

}  // namespace
}  // namespace kiln::partition
