#include "compiler/partition/scatter/prepare_scatters.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/walk.h"
#include "compiler/partition/reads.h"
#include "compiler/partition/scatter/spread_scatter.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::DType;
using ir::Node;
using ir::Op;

namespace {

const Node* Cast(ir::Context& context, const Node* x, DType dtype) {
  return x->dtype() == dtype ? x : context.Get(Op::kCast, dtype, x->shape(), {x});
}

// where(index == i, combined, x)
const Node* Elementwise(ir::Context& context, const Node* scatter) {
  TensorMaker make(context);
  const Node* x = scatter->operand(0);
  const ir::Shape& shape = x->shape();
  const auto [axis, mode] = scatter->attr<ir::ScatterAttr>();
  // An unsigned index beyond int64 becomes negative and matches nothing, as it should.
  const Node* index = make.Expand(Cast(context, scatter->operand(1), DType::kInt64), shape);
  const Node* row = context.Get(Op::kIota, DType::kInt64, shape, {}, ir::IntAttr{axis});
  const Node* hit = context.Get(Op::kCmpEq, DType::kBool, shape, {index, row});
  const Node* value = make.Expand(scatter->operand(2), shape);
  if (const std::optional<Op> combiner = ir::CombinerOf(mode)) {
    value = context.Get(*combiner, x->dtype(), shape, {x, value});
  }
  return context.Get(Op::kWhere, x->dtype(), shape, {hit, value, x});
}

// Number of pieces of a long list of positions. Fixed, so that sums do not depend on the number of
// threads.
constexpr int64_t kParts = 8;
// Minimum number of positions per piece.
constexpr int64_t kPositionsMin = 4096;
// Bound on the elements of one position: longer rows are already distributed among threads.
constexpr int64_t kElementsMax = 16;

bool IsWorthSplitting(const Node* scatter) {
  const auto [axis, mode] = scatter->attr<ir::ScatterAttr>();
  const int64_t positions = SpaceOf(scatter)[axis];
  const int64_t elements = ir::NumElements(scatter->shape());
  // The pieces' results are written and read once more, which must be little compared to the
  // scattered values.
  return mode == ir::ScatterMode::kAdd && positions >= kParts * kPositionsMin &&
         elements / scatter->shape()[axis] <= kElementsMax &&
         2 * kParts * elements <= ir::NumElements(SpaceOf(scatter));
}

// Splits x's axis into kParts pieces, with the piece as dimension 0. Padding at the end is zero,
// which adds nothing wherever it goes.
const Node* InParts(TensorMaker& make, const Node* x, int64_t axis) {
  const int64_t length = x->shape()[axis];
  const int64_t part = (length + kParts - 1) / kParts;
  std::vector<int64_t> padding(2 * x->shape().size(), 0);
  padding[2 * axis + 1] = part * kParts - length;
  ir::Shape cut = x->shape();
  cut[axis] = part;
  cut.insert(cut.begin() + axis, kParts);
  return make.MoveAxis(make.Reshape(make.Pad(x, padding), cut), axis, 0);
}

// x plus the sum over the pieces.
const Node* SplitScatter(ir::Context& context, const Node* scatter, int64_t* copies) {
  TensorMaker make(context);
  const auto [axis, mode] = scatter->attr<ir::ScatterAttr>();
  const Node* x = scatter->operand(0);
  ir::Shape shape = x->shape();
  shape.insert(shape.begin(), kParts);
  const Node* zeros = context.Get(Op::kMutable, x->dtype(), shape, {make.Zeros(x->dtype(), shape)},
                                  ir::IntAttr{(*copies)++});
  const Node* sums = context.Get(
      Op::kScatterElements, x->dtype(), shape,
      {zeros, InParts(make, scatter->operand(1), axis), InParts(make, scatter->operand(2), axis)},
      ir::ScatterAttr{axis + 1, mode});
  const Node* sum = make.Reshape(make.Reduce(Op::kReduceSum, sums, {0}), x->shape());
  return context.Get(Op::kAdd, x->dtype(), x->shape(), {x, sum});
}

class ScatterPreparer {
 public:
  ScatterPreparer(const graph::Graph& graph, const drivers::Target& target)
      : context_(*graph.context), target_(target) {
    const std::vector<const Node*> roots = graph::Roots(graph);
    const std::vector<const Node*> order = ir::TopologicalOrder(roots);
    const auto uses = CountUses(order, roots);
    for (const Node* node : order) {
      std::vector<const Node*> operands;
      for (const Node* operand : node->operands()) operands.push_back(made_.at(operand));
      const Node* made = context_.WithOperands(node, std::move(operands));
      if (IsScatter(made)) made = Prepare(made);
      made_[node] = made;
      uses_[made] += uses.at(node);
    }
  }

  const Node* Of(const Node* node) const { return made_.at(node); }

 private:
  const Node* Prepare(const Node* scatter) {
    const Node* x = scatter->operand(0);
    if (ir::NumElements(x->shape()) == 0 || ir::NumElements(SpaceOf(scatter)) == 0) return x;
    if (SpaceOf(scatter)[scatter->attr<ir::ScatterAttr>().axis] == 1) {
      return Elementwise(context_, scatter);
    }
    const Node* spread = SpreadScatter(context_, scatter, target_);
    if (spread != scatter) return spread;
    if (IsWorthSplitting(scatter)) return SplitScatter(context_, scatter, &copies_);
    if (IsScatter(x) && uses_[x] <= 1) return scatter;
    const Node* base =
        context_.Get(Op::kMutable, x->dtype(), x->shape(), {x}, ir::IntAttr{copies_++});
    return context_.WithOperands(scatter, {base, scatter->operand(1), scatter->operand(2)});
  }

  ir::Context& context_;
  const drivers::Target& target_;
  absl::flat_hash_map<const Node*, const Node*> made_;
  absl::flat_hash_map<const Node*, int> uses_;  // of the nodes made
  int64_t copies_ = 0;                          // number of copies that scatters overwrite
};

}  // namespace

graph::Graph PrepareScatters(const graph::Graph& graph, const drivers::Target& target) {
  const ScatterPreparer preparer(graph, target);
  std::vector<const Node*> roots = graph::Roots(graph);
  for (const Node*& root : roots) root = preparer.Of(root);
  return graph::WithRoots(graph, roots);
}

}  // namespace kiln::partition
