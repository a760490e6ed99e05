#include "compiler/partition/memory/commit_last.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using testing::ElementsAre;

// A partition of groups that are told apart by the tensors that they write.
class CommitLastTest : public testing::Test {
 protected:
  int Add(Tensor::Kind kind, int index, int64_t size) {
    partition_.tensors.push_back({kind, index, ir::DType::kFloat32, {size}, nullptr});
    return static_cast<int>(partition_.tensors.size()) - 1;
  }
  void AddGroup(std::vector<int> reads, int write) {
    Group group;
    group.reads = std::move(reads);
    group.writes = {write};
    partition_.groups.push_back(group);
  }
  std::vector<int> Order() {
    EXPECT_TRUE(CommitLast(graph_, {}, &partition_).ok());
    std::vector<int> order;
    for (const Group& group : partition_.groups) order.push_back(group.writes[0]);
    return order;
  }

  graph::Graph graph_;
  Partition partition_;
};

TEST_F(CommitLastTest, UpdatesFollowOtherGroups) {
  graph_.updates = {{0, nullptr}};
  const int weight = Add(Tensor::Kind::kInput, 0, 1000);
  const int update = Add(Tensor::Kind::kUpdate, 0, 1000);
  const int loss = Add(Tensor::Kind::kOutput, 0, 1);
  const int norm = Add(Tensor::Kind::kOutput, 1, 1);
  AddGroup({weight}, update);
  AddGroup({update}, norm);
  AddGroup({weight}, loss);
  EXPECT_THAT(Order(), ElementsAre(loss, update, norm));
}

// A kernel that counts steps and makes something else, which all others read.
TEST_F(CommitLastTest, GroupsThatOthersNeedKeepTheirPlace) {
  graph_.updates = {{0, nullptr}, {1, nullptr}};
  const int steps = Add(Tensor::Kind::kInput, 0, 1);
  const int weight = Add(Tensor::Kind::kInput, 1, 1000);
  const int next = Add(Tensor::Kind::kUpdate, 0, 1);
  const int update = Add(Tensor::Kind::kUpdate, 1, 1000);
  const int correction = Add(Tensor::Kind::kIntermediate, 0, 1);
  const int loss = Add(Tensor::Kind::kOutput, 0, 1);
  AddGroup({steps}, next);
  partition_.groups[0].writes.push_back(correction);
  AddGroup({weight, correction}, update);
  AddGroup({weight, correction}, loss);
  EXPECT_THAT(Order(), ElementsAre(next, loss, update));
}

TEST_F(CommitLastTest, GroupsThatReplaceNothingKeepTheirPlace) {
  graph_.updates = {{1, nullptr}};
  const int input = Add(Tensor::Kind::kInput, 0, 1000);
  Add(Tensor::Kind::kInput, 1, 1000);
  const int update = Add(Tensor::Kind::kUpdate, 0, 1000);
  const int loss = Add(Tensor::Kind::kOutput, 0, 1);
  AddGroup({input}, update);
  AddGroup({input}, loss);
  EXPECT_THAT(Order(), ElementsAre(update, loss));
}

// Each update reads an intermediate result. If all of them come last, all these results live at
// once.
class GrowthTest : public CommitLastTest {
 protected:
  static constexpr int kUpdates = 8;

  // Whether the order was changed, for intermediate results of this size.
  bool Changes(int64_t size) {
    const int from = Add(Tensor::Kind::kInput, 0, 1000);
    for (int i = 1; i <= kUpdates; ++i) Add(Tensor::Kind::kInput, i, 1000);
    std::vector<int> order;
    for (int i = 0; i < kUpdates; ++i) {
      graph_.updates.push_back({from + 1 + i, nullptr});
      const int gradient = Add(Tensor::Kind::kIntermediate, 0, size);
      AddGroup({from}, gradient);
      const int update = Add(Tensor::Kind::kUpdate, i, 1000);
      AddGroup({gradient, from + 1 + i}, update);
      order.insert(order.end(), {gradient, update});
    }
    return Order() != order;
  }
};

TEST_F(GrowthTest, SmallIntermediateResultsLiveLonger) { EXPECT_TRUE(Changes(500)); }
TEST_F(GrowthTest, LargeOnesDoNot) { EXPECT_FALSE(Changes(600)); }

}  // namespace
}  // namespace kiln::partition
