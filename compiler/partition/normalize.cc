#include "compiler/partition/normalize.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "compiler/ir/walk.h"
#include "compiler/partition/materialize.h"
#include "compiler/partition/merge_reductions.h"
#include "compiler/partition/reads.h"
#include "compiler/partition/split_reduction.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

const std::vector<int64_t>& Ints(const Node* node) { return node->attr<ir::IntsAttr>().values; }

bool IsZero(const Node* node) {
  while (node->op() == Op::kExpand || node->op() == Op::kReshape) node = node->operand(0);
  return node->op() == Op::kConst && ir::IsFloat(node->dtype()) &&
         node->attr<ir::ConstValue>().AsDouble() == 0;
}

// x + sum over positions p of where(index[p] == i, values[p], 0).
const Node* ReplaceScatter(ir::Context& context, const Node* node) {
  TensorMaker make(context);
  const Node* x = node->operand(0);
  const Node* values = node->operand(2);
  const int64_t axis = node->attr<ir::IntAttr>().value;
  const int64_t positions = ir::NumElements(node->operand(1)->shape());
  ir::Shape narrow = x->shape();
  narrow[axis] = 1;
  narrow.insert(narrow.begin() + axis, positions);
  ir::Shape wide = narrow;
  wide[axis + 1] = x->shape()[axis];

  const Node* index =
      context.Get(Op::kCast, ir::DType::kInt64, node->operand(1)->shape(), {node->operand(1)});
  if (node->operand(1)->dtype() == ir::DType::kInt64) index = node->operand(1);
  ir::Shape index_shape(wide.size(), 1);
  index_shape[axis] = positions;
  index = make.Expand(make.Reshape(index, index_shape), wide);
  const Node* row = context.Get(Op::kIota, ir::DType::kInt64, wide, {}, ir::IntAttr{axis + 1});
  const Node* hit = context.Get(Op::kCmpEq, ir::DType::kBool, wide, {index, row});
  const Node* value = make.Expand(make.Reshape(values, narrow), wide);
  const Node* zero = make.Zeros(x->dtype(), wide);
  const Node* chosen = context.Get(Op::kWhere, x->dtype(), wide, {hit, value, zero});
  const Node* sum = make.Reshape(make.Reduce(Op::kReduceSum, chosen, {axis}), x->shape());
  // Gradients add to zeros.
  if (IsZero(x)) return sum;
  return context.Get(Op::kAdd, x->dtype(), x->shape(), {x, sum});
}

// A window that steps by its own length only cuts the axis into pieces.
const Node* ReplaceWindow(ir::Context& context, const Node* node) {
  const int64_t axis = Ints(node)[0];
  const int64_t size = Ints(node)[1];
  if (Ints(node)[2] != size || (size > 1 && Ints(node)[3] != 1)) return node;
  TensorMaker make(context);
  const Node* x = node->operand(0);
  const int64_t count = node->shape()[axis];
  std::vector<int64_t> bounds;
  for (const int64_t extent : x->shape()) bounds.insert(bounds.end(), {0, extent});
  bounds[2 * axis + 1] = count * size;
  ir::Shape cut = x->shape();
  cut[axis] = size;
  cut.insert(cut.begin() + axis, count);
  const Node* pieces = make.Reshape(make.Shrink(x, bounds), cut);
  return make.MoveAxis(pieces, axis + 1, static_cast<int64_t>(cut.size()) - 1);
}

// The adjoint: the sum over an unwindow's last dimension puts the pieces together again.
const Node* ReplaceUnwindowSum(ir::Context& context, const Node* node) {
  const Node* unwindow = node->operand(0);
  if (node->op() != Op::kReduceSum || unwindow->op() != Op::kUnwindow) return node;
  const Node* x = unwindow->operand(0);
  const int64_t axis = Ints(unwindow)[0];
  const int64_t last = static_cast<int64_t>(x->shape().size()) - 1;
  const int64_t size = x->shape().back();
  std::vector<int64_t> others = Ints(node);
  auto found = absl::c_find(others, last);
  if (found == others.end() || Ints(unwindow)[2] != size || (size > 1 && Ints(unwindow)[3] != 1)) {
    return node;
  }
  others.erase(found);
  TensorMaker make(context);
  ir::Shape joined = x->shape();
  joined.pop_back();
  joined[axis] *= size;
  const Node* whole = make.Reshape(make.MoveAxis(x, last, axis + 1), joined);
  const int64_t length = unwindow->shape()[axis];
  // What a window did not reach gets zero; what hangs over the end was read from nowhere.
  if (joined[axis] > length) return node;
  std::vector<int64_t> padding(2 * joined.size(), 0);
  padding[2 * axis + 1] = length - joined[axis];
  whole = make.Pad(whole, padding);
  ir::Shape with_unit = whole->shape();
  with_unit.push_back(1);
  return make.Reduce(Op::kReduceSum, make.Reshape(whole, with_unit), others);
}

const Node* Replace(ir::Context& context, const Node* node) {
  switch (node->op()) {
    case Op::kScatterAdd:
      return ReplaceScatter(context, node);
    case Op::kWindow:
      return ReplaceWindow(context, node);
    case Op::kReduceSum:
      return ReplaceUnwindowSum(context, node);
    case Op::kDetach:
      return node->operand(0);
    default:
      return node;
  }
}

// Products that a sum is split into.
constexpr int kMaxProducts = 32;

using Replacement = absl::flat_hash_map<const Node*, const Node*>;

// where(0 < x, x, 0), which is relu.
bool IsRelu(const Node* node) {
  if (node->op() != Op::kWhere || !IsZero(node->operand(2))) return false;
  const Node* condition = node->operand(0);
  return condition->op() == Op::kCmpLt && IsZero(condition->operand(0)) &&
         condition->operand(1) == node->operand(1);
}

// A fused walk of both rewrites: operands first, so that a merged inner sum is seen by the outer
// one.
class Normalizer {
 public:
  explicit Normalizer(const graph::Graph& graph) : context_(*graph.context) {
    std::vector<const Node*> roots = graph.outputs;
    for (const graph::Update& update : graph.updates) roots.push_back(update.value);
    const std::vector<const Node*> order = ir::TopologicalOrder(roots);
    absl::flat_hash_map<const Node*, int> uses;
    for (const Node* node : order) {
      for (const Node* operand : node->operands()) ++uses[operand];
    }
    // What leaves the graph is used by more than its readers here.
    for (const Node* root : roots) uses[root] += 2;
    for (const Node* node : order) {
      if (IsRelu(node)) relu_of_.try_emplace(node->operand(0), node);
    }
    for (const Node* node : order) {
      const Node* made = Made(node);
      uses_[made] += uses[node];
    }
  }

  const Node* Of(const Node* node) const { return replacement_.at(node); }

 private:
  const Node* Made(const Node* node) {
    if (auto known = replacement_.find(node); known != replacement_.end()) return known->second;
    const Node* made = Make(node);
    replacement_[node] = made;
    return made;
  }

  // 0 < x is 0 < relu(x), NaN included. Asking the latter lets a program keep relu(x) alone for its
  // backward pass.
  const Node* MadeOperand(const Node* node, const Node* operand) {
    auto relu = relu_of_.find(operand);
    if (relu == relu_of_.end() || IsRelu(node)) return replacement_.at(operand);
    const Node* zero = replacement_.at(operand->operand(0));
    return context_.WithOperands(operand, {zero, Made(relu->second)});
  }

  const Node* Make(const Node* node) {
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(MadeOperand(node, operand));
    const Node* current = context_.WithOperands(node, std::move(operands));
    if (ir::NumElements(SpaceOf(current)) == 0 && current->op() != Op::kScatterAdd) return current;
    if (const Node* split = SplitProducts(current, kMaxProducts); split != nullptr) return split;
    return Finished(current);
  }

  // A sum of several products is one contraction for each. (Gradients of a value that feeds several
  // matmuls come so.)
  const Node* SplitProducts(const Node* sum, int at_most) {
    if (sum->op() != Op::kReduceSum || at_most == 0) return nullptr;
    std::vector<const Node*> movements;
    const Node* inner = sum->operand(0);
    while (IsMovement(inner) && inner->op() != Op::kContiguous && IsSingleUse(inner)) {
      movements.push_back(inner);
      inner = inner->operand(0);
    }
    if (inner->op() != Op::kAdd || !IsSingleUse(inner)) return nullptr;
    const Node* whole[2];
    const Node* split[2];
    for (const int i : {0, 1}) {
      const Node* part = inner->operand(i);
      for (size_t j = movements.size(); j-- > 0;) {
        part = context_.WithOperands(movements[j], {part});
      }
      whole[i] = context_.WithOperands(sum, {part});
      split[i] = SplitProducts(whole[i], at_most - 1);
    }
    const bool contracts = split[0] != nullptr || split[1] != nullptr || IsContraction(whole[0]) ||
                           IsContraction(whole[1]);
    if (!contracts) return nullptr;
    for (const int i : {0, 1}) {
      if (split[i] == nullptr) split[i] = Finished(whole[i]);
    }
    return context_.Get(Op::kAdd, sum->dtype(), sum->shape(), {split[0], split[1]});
  }

  bool IsSingleUse(const Node* node) const {
    auto found = uses_.find(node);
    return found == uses_.end() || found->second <= 1;
  }

  const Node* Finished(const Node* current) {
    current = Replace(context_, current);
    current =
        MergeReduction(context_, current, [this](const Node* inner) { return IsSingleUse(inner); });
    return SplitReduction(context_, current);
  }

  ir::Context& context_;
  Replacement replacement_;
  absl::flat_hash_map<const Node*, const Node*> relu_of_;  // by condition
  absl::flat_hash_map<const Node*, int> uses_;
};

}  // namespace

graph::Graph Normalize(const graph::Graph& graph) {
  const Normalizer normalizer(graph);
  graph::Graph result = graph;
  for (const Node*& output : result.outputs) output = normalizer.Of(output);
  for (graph::Update& update : result.updates) update.value = normalizer.Of(update.value);
  return result;
}

}  // namespace kiln::partition
