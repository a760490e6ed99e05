#include "compiler/partition/split_epilogue.h"

#include <memory>
#include <vector>

#include "compiler/ops/builder.h"
#include "compiler/partition/fuse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using ir::DType;
using ::testing::SizeIs;
using Node = const ir::Node*;

// A product of matrices [rows, 8] x [8, columns] with an epilogue.
class SplitEpilogueTest : public testing::Test {
 protected:
  SplitEpilogueTest() : context_(std::make_shared<ir::Context>()), b_(*context_) {
    graph_.context = context_;
  }

  Node Input(const ir::Shape& shape) {
    graph_.inputs.push_back({DType::kFloat32, shape});
    return b_.Input(static_cast<int64_t>(graph_.inputs.size()) - 1, DType::kFloat32, shape);
  }

  Node Product(int64_t rows, int64_t columns) {
    Node a = b_.Expand(b_.Reshape(Input({rows, 8}), {rows, 8, 1}), {rows, 8, columns});
    Node b = b_.Expand(b_.Reshape(Input({8, columns}), {1, 8, columns}), {rows, 8, columns});
    return b_.Reshape(b_.Sum(b_.Mul(a, b), {1}), {rows, columns});
  }

  // As in Adam: every tensor of the state is updated with the gradient, the last with all of them.
  std::vector<Node> UpdatedStates(Node gradient, int states) {
    std::vector<Node> updated;
    Node all = gradient;
    for (int i = 0; i < states; ++i) {
      updated.push_back(b_.Add(b_.Mul(Input(gradient->shape()), 0.9), all));
      all = b_.Mul(all, updated.back());
    }
    return updated;
  }

  std::vector<Group> Groups(std::vector<Node> outputs) {
    graph_.outputs = std::move(outputs);
    absl::StatusOr<Partition> partition = Fuse(graph_);
    EXPECT_TRUE(partition.ok()) << partition.status();
    EXPECT_EQ(Verify(*partition, graph_), absl::OkStatus());
    return partition->groups;
  }

  std::shared_ptr<ir::Context> context_;
  ops::Builder b_;
  graph::Graph graph_;
};

TEST_F(SplitEpilogueTest, ManyLargeStreamsAreAKernel) {
  const std::vector<Group> groups = Groups(UpdatedStates(Product(1024, 1024), kMostStreams + 1));
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[0].writes, SizeIs(1));
  EXPECT_THAT(groups[0].loops, SizeIs(3));
  EXPECT_THAT(groups[1].writes, SizeIs(kMostStreams + 1));
  EXPECT_THAT(groups[1].reads, SizeIs(kMostStreams + 2));
  EXPECT_THAT(groups[1].loops, SizeIs(2));
}

TEST_F(SplitEpilogueTest, FewStreamsStay) {
  EXPECT_THAT(Groups(UpdatedStates(Product(1024, 1024), kMostStreams)), SizeIs(1));
}

TEST_F(SplitEpilogueTest, WhatCachesHoldStays) {
  EXPECT_THAT(Groups(UpdatedStates(Product(1024, 1023), kMostStreams + 1)), SizeIs(1));
}

// Its state is read by rows and by columns, and what reads the results comes after them.
TEST_F(SplitEpilogueTest, ReadersOfTheResultsComeAfterThem) {
  Node gradient = Product(1024, 2048);
  std::vector<Node> outputs = UpdatedStates(gradient, kMostStreams + 1);
  outputs.push_back(b_.Sum(b_.Mul(outputs[1], gradient), {0}));
  outputs.push_back(b_.Max(b_.Add(outputs[0], outputs[2]), {1}));
  const std::vector<Group> groups = Groups(std::move(outputs));
  EXPECT_GE(groups.size(), 3);
  EXPECT_THAT(groups[0].writes, SizeIs(1));
}

}  // namespace
}  // namespace kiln::partition
