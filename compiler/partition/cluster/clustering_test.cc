#include "compiler/partition/cluster/clustering.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using testing::HasSubstr;

// Two clusters of one member each; the second reads from the first.
class ClusteringTest : public testing::Test {
 protected:
  ClusteringTest() {
    const ir::Node* x = context_.Get(ir::Op::kInput, ir::DType::kFloat32, {8}, {}, ir::IntAttr{0});
    const ir::Node* y = Add(x);
    Add(y);
  }

  const ir::Node* Add(const ir::Node* operand) {
    Member member;
    member.node = context_.Get(ir::Op::kNeg, ir::DType::kFloat32, {8}, {operand});
    member.space = {8};
    member.reduced = {false};
    member.axes = {{{0, 1, 8}}};
    member.reads = {{operand, Identity({8})}};
    const int number = static_cast<int>(all_.clusters.size());
    member.cluster = number;
    member.stage = 0;
    all_.member_of[member.node] = number;
    all_.members.push_back(member);
    Cluster cluster;
    cluster.loops = {8};
    cluster.grid = {0};
    cluster.stages = {{number}};
    all_.clusters.push_back(cluster);
    all_.dependencies.AddCluster();
    all_.AddDependencies(member);
    return member.node;
  }

  std::string Refusal() const { return std::string(Verify(all_).message()); }

  ir::Context context_;
  Clustering all_;
};

TEST_F(ClusteringTest, IsLegalAndPrints) {
  EXPECT_EQ(Verify(all_), absl::OkStatus());
  EXPECT_EQ(Print(all_),
            "cluster 0\n  grid l0:8\n  stage\n    neg float32[8]\n"
            "cluster 1\n  grid l0:8\n  stage\n    neg float32[8]\n");
}

TEST_F(ClusteringTest, AMemberStandsInOnePlace) {
  all_.clusters[1].stages = {{1, 0}};
  EXPECT_EQ(Refusal(), "cluster 1 is not the one place of member 0");
  all_.clusters[1].stages.clear();
  EXPECT_EQ(Refusal(), "cluster 1 lacks member 1");
}

TEST_F(ClusteringTest, LoopsExist) {
  all_.clusters[1].grid = {2};
  EXPECT_EQ(Refusal(), "cluster 1 has no loop 2");
  all_.clusters[1].grid = {0};
  all_.members[1].axes = {{{1, 1, 8}}};
  EXPECT_EQ(Refusal(), "cluster 1 lacks the loops of member 1");
  all_.members[1].axes = {{{0, 1, 4}}};
  EXPECT_EQ(Refusal(), "cluster 1 lacks the loops of member 1");
  all_.members[1].axes = {{{0, 4, 8}}};
  EXPECT_EQ(Refusal(), "cluster 1 lacks the loops of member 1");
}

TEST_F(ClusteringTest, WhatIsReadComesFirst) {
  all_.members[0].reads = {{all_.members[1].node, Identity({8})}};
  EXPECT_THAT(Refusal(), HasSubstr("cluster 0 comes before what it reads, 1"));
}

}  // namespace
}  // namespace kiln::partition
