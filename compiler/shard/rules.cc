#include "compiler/shard/rules.h"

#include <algorithm>
#include <array>

#include "compiler/ir/reshape_groups.h"

namespace kiln::shard {
namespace {

using ir::Node;
using ir::Op;

// Maps the layout of one side of a movement to the other side.
using MoveFn = Spec (*)(const Mesh& mesh, const Node* node, const Spec& from);

struct Row {
  Op op;
  RuleKind kind;
  MoveFn push = nullptr;  // movements only
  MoveFn pull = nullptr;
};

size_t OperandRank(const Node* node) { return node->operand(0)->shape().size(); }

// The elements of `from`'s dimensions, outermost first, are those of `to`'s. A split is kept while
// it cuts the elements into equal runs: on the first dimension, and on later ones if all dimensions
// before them are split into single elements.
void Regroup(const Mesh& mesh, const ir::ReshapeGroup& group, const ir::Shape& from,
             const Spec& from_spec, const ir::Shape& to, Spec& to_spec) {
  std::vector<int> axes;
  for (size_t dim = group.from; dim < group.from_end; ++dim) {
    axes.insert(axes.end(), from_spec[dim].begin(), from_spec[dim].end());
    if (graph::Parts(mesh, from_spec, dim) != from[dim]) break;
  }
  size_t next = 0;
  for (size_t dim = group.to; dim < group.to_end; ++dim) {
    int64_t rest = to[dim];
    while (next < axes.size() && rest % mesh.axes[axes[next]].size == 0) {
      rest /= mesh.axes[axes[next]].size;
      to_spec[dim].push_back(axes[next++]);
    }
    if (rest != 1) return;
  }
}

Spec Reshaped(const Mesh& mesh, const ir::Shape& from, const Spec& from_spec, const ir::Shape& to) {
  Spec to_spec(to.size());
  if (ir::NumElements(from) == 0) return to_spec;
  for (const ir::ReshapeGroup& group : ir::ReshapeGroups(from, to)) {
    Regroup(mesh, group, from, from_spec, to, to_spec);
  }
  return to_spec;
}

Spec PushReshape(const Mesh& mesh, const Node* node, const Spec& from) {
  return Reshaped(mesh, node->operand(0)->shape(), from, node->shape());
}
Spec PullReshape(const Mesh& mesh, const Node* node, const Spec& to) {
  return Reshaped(mesh, node->shape(), to, node->operand(0)->shape());
}

Spec PushPermute(const Mesh& mesh, const Node* node, const Spec& from) {
  Spec to(from.size());
  for (size_t i = 0; i < to.size(); ++i) to[i] = from[ir::IntsOf(node)[i]];
  return to;
}
Spec PullPermute(const Mesh& mesh, const Node* node, const Spec& to) {
  Spec from(to.size());
  for (size_t i = 0; i < to.size(); ++i) from[ir::IntsOf(node)[i]] = to[i];
  return from;
}

// A repeated dimension is whole in the operand of every device.
Spec PushExpand(const Mesh& mesh, const Node* node, const Spec& from) { return from; }
Spec PullExpand(const Mesh& mesh, const Node* node, const Spec& to) {
  Spec from = to;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (node->operand(0)->shape()[dim] == 1) from[dim].clear();
  }
  return from;
}

// Nothing is padded or cut off along dimensions of unchanged size.
Spec KeepEqualSizes(const Mesh& mesh, const Node* node, const Spec& spec) {
  Spec kept = spec;
  for (size_t dim = 0; dim < kept.size(); ++dim) {
    if (node->operand(0)->shape()[dim] != node->shape()[dim]) kept[dim].clear();
  }
  return kept;
}

Spec KeepUnflipped(const Mesh& mesh, const Node* node, const Spec& spec) {
  Spec kept = spec;
  for (const int64_t axis : ir::IntsOf(node)) kept[axis].clear();
  return kept;
}

// The axis that windows slide along is whole, and so are the windows.
Spec PushWindow(const Mesh& mesh, const Node* node, const Spec& from) {
  Spec to = from;
  to[ir::IntsOf(node)[0]].clear();
  to.emplace_back();
  return to;
}
Spec PullWindow(const Mesh& mesh, const Node* node, const Spec& to) {
  Spec from(to.begin(), to.begin() + static_cast<int64_t>(OperandRank(node)));
  from[ir::IntsOf(node)[0]].clear();
  return from;
}

Spec KeepAroundWindow(const Mesh& mesh, const Node* node, const Spec& spec) {
  Spec kept = spec;
  kept[ir::IntsOf(node)[0]].clear();
  kept.back().clear();
  return kept;
}

// In the order of Op.
constexpr std::array<Row, ir::kNumOps> kRows = {{
    {Op::kConst, RuleKind::kConst},
    {Op::kInput, RuleKind::kInput},
    {Op::kIota, RuleKind::kIota},
    {Op::kNeg, RuleKind::kElementwise},
    {Op::kReciprocal, RuleKind::kElementwise},
    {Op::kSqrt, RuleKind::kElementwise},
    {Op::kExp2, RuleKind::kElementwise},
    {Op::kLog2, RuleKind::kElementwise},
    {Op::kSin, RuleKind::kElementwise},
    {Op::kTrunc, RuleKind::kElementwise},
    {Op::kNot, RuleKind::kElementwise},
    {Op::kCast, RuleKind::kElementwise},
    {Op::kBitcast, RuleKind::kElementwise},
    {Op::kAdd, RuleKind::kElementwise},
    {Op::kSub, RuleKind::kElementwise},
    {Op::kMul, RuleKind::kElementwise},
    {Op::kDiv, RuleKind::kElementwise},
    {Op::kIDiv, RuleKind::kElementwise},
    {Op::kMod, RuleKind::kElementwise},
    {Op::kMax, RuleKind::kElementwise},
    {Op::kMin, RuleKind::kElementwise},
    {Op::kPow, RuleKind::kElementwise},
    {Op::kCmpLt, RuleKind::kElementwise},
    {Op::kCmpEq, RuleKind::kElementwise},
    {Op::kCmpNe, RuleKind::kElementwise},
    {Op::kAnd, RuleKind::kElementwise},
    {Op::kOr, RuleKind::kElementwise},
    {Op::kXor, RuleKind::kElementwise},
    {Op::kShl, RuleKind::kElementwise},
    {Op::kShr, RuleKind::kElementwise},
    {Op::kWhere, RuleKind::kElementwise},
    {Op::kReduceSum, RuleKind::kReduce},
    {Op::kReduceProd, RuleKind::kReduce},
    {Op::kReduceMax, RuleKind::kReduce},
    {Op::kReshape, RuleKind::kMovement, PushReshape, PullReshape},
    {Op::kPermute, RuleKind::kMovement, PushPermute, PullPermute},
    {Op::kExpand, RuleKind::kMovement, PushExpand, PullExpand},
    {Op::kPad, RuleKind::kMovement, KeepEqualSizes, KeepEqualSizes},
    {Op::kShrink, RuleKind::kMovement, KeepEqualSizes, KeepEqualSizes},
    {Op::kFlip, RuleKind::kMovement, KeepUnflipped, KeepUnflipped},
    {Op::kWindow, RuleKind::kMovement, PushWindow, PullWindow},
    {Op::kUnwindow, RuleKind::kMovement, KeepAroundWindow, KeepAroundWindow},
    {Op::kGatherElements, RuleKind::kGather},
    {Op::kScatterElements, RuleKind::kScatter},
    {Op::kContiguous, RuleKind::kElementwise},
    {Op::kDetach, RuleKind::kElementwise},
    {Op::kShard, RuleKind::kShard},
    {Op::kSend, RuleKind::kNone},
    {Op::kMutable, RuleKind::kNone},
    {Op::kWithDerivative, RuleKind::kElementwise},
    {Op::kGradient, RuleKind::kNone},
    {Op::kRange, RuleKind::kNone},
    {Op::kLoad, RuleKind::kNone},
    {Op::kReduce, RuleKind::kNone},
}};

// A missing or misplaced row does not compile.
constexpr bool RowsStandByOp() {
  for (int i = 0; i < ir::kNumOps; ++i) {
    if (static_cast<int>(kRows[i].op) != i) return false;
  }
  return true;
}
static_assert(RowsStandByOp());

const Row& RowOf(Op op) { return kRows[static_cast<size_t>(op)]; }

}  // namespace

bool IsSplitBy(const Spec& spec, int axis) {
  return std::any_of(spec.begin(), spec.end(), [axis](const std::vector<int>& axes) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  });
}

RuleKind RuleOf(Op op) { return RowOf(op).kind; }

Spec Push(const Mesh& mesh, const Node* movement, const Spec& operand) {
  return RowOf(movement->op()).push(mesh, movement, operand);
}

Spec Pull(const Mesh& mesh, const Node* movement, const Spec& result) {
  return RowOf(movement->op()).pull(mesh, movement, result);
}

}  // namespace kiln::shard
