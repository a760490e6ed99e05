#include "compiler/proof/edges.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "compiler/ir/walk.h"
#include "compiler/schedule/reduction.h"

namespace kiln::proof {

using ir::Node;
using ir::Op;

namespace {

constexpr int kRoundsEach = 3;
// Points that are tried for one edge.
constexpr int kTries = 80;

std::vector<const Node*> ReducesOf(const kernel::Stage& stage) {
  std::vector<const Node*> roots, reduces;
  for (const kernel::Store& store : stage.stores) roots.push_back(store.value);
  for (const Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() == Op::kReduce) reduces.push_back(node);
  }
  return reduces;
}

}  // namespace

Edges::Edges(const kernel::Kernel& kernel, const schedule::Plan& plan, uint64_t seed)
    : random_(seed) {
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    if (!plan.stages[i].skip) continue;
    Stage stage;
    stage.conditions = schedule::NeededConditions(ReducesOf(kernel.stages[i]));
    for (const Node* condition : stage.conditions) {
      for (const Node* range : ir::RangesOf(condition)) {
        if (!absl::c_linear_search(stage.ranges, range)) stage.ranges.push_back(range);
      }
    }
    stages_.push_back(std::move(stage));
  }
  for (const Stage& stage : stages_) {
    for (const Node* condition : stage.conditions) {
      if (condition->op() != Op::kCmpLt) continue;
      for (const bool holds : {false, true}) edges_.push_back({&stage, condition, holds});
    }
  }
}

int Edges::Rounds() const { return static_cast<int>(edges_.size()) * kRoundsEach; }

// Most edges are where loops begin and end.
int64_t Edges::Pick(const Node* range) {
  const int64_t extent = ir::ExtentOf(range);
  const int64_t ends[] = {0, std::min<int64_t>(1, extent - 1), std::max<int64_t>(0, extent - 2),
                          extent - 1};
  const uint64_t bits = random_();
  if (bits % 2 == 0) return ends[bits / 2 % 4];
  return static_cast<int64_t>(bits / 2 % static_cast<uint64_t>(extent));
}

std::optional<int64_t> Edges::DistanceTo(const Edge& edge, const kernel::IndexPoint& point) const {
  const auto a = kernel::ValueAt(edge.less->operand(0), point);
  const auto b = kernel::ValueAt(edge.less->operand(1), point);
  if (!a || !b || (*a < *b) != edge.holds) return std::nullopt;
  const bool others_hold = absl::c_all_of(edge.stage->conditions, [&](const Node* condition) {
    return condition == edge.less || kernel::ValueAt(condition, point).value_or(0) != 0;
  });
  if (!others_hold) return std::nullopt;
  return edge.holds ? *b - *a : *a - *b;
}

std::optional<kernel::IndexPoint> Edges::Next() {
  const Edge& edge = edges_[turn_++ % edges_.size()];
  std::optional<kernel::IndexPoint> nearest;
  int64_t least = 0;
  for (int i = 0; i < kTries; ++i) {
    kernel::IndexPoint point;
    for (const Node* range : edge.stage->ranges) point[range] = Pick(range);
    const std::optional<int64_t> distance = DistanceTo(edge, point);
    // Any of several that are equally near.
    const bool nearer =
        distance && (!nearest || *distance < least || (*distance == least && random_() % 2 == 0));
    if (!nearer) continue;
    least = *distance;
    nearest = std::move(point);
  }
  return nearest;
}

}  // namespace kiln::proof
