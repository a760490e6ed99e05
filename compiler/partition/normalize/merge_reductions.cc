#include "compiler/partition/normalize/merge_reductions.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/partition/reads.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

using IntList = std::vector<int64_t>;

// Returns whether a reduction of this kind may be done after the movement instead of before it.
bool Commutes(Op reduction, const Node* movement) {
  switch (movement->op()) {
    case Op::kReshape:
    case Op::kPermute:
    case Op::kFlip:
    case Op::kShrink:
      return true;
    case Op::kPad:  // fills with zero, the neutral element only of sums
      return reduction == Op::kReduceSum;
    case Op::kUnwindow:
      return reduction == Op::kReduceSum && ir::IntsOf(movement)[2] == 1;
    // Expands and windows repeat elements, and would repeat the inner work.
    default:
      return false;
  }
}

// Applies movement to tensors with additional dimensions at the end.
class Lifter {
 public:
  Lifter(ir::Context& context, ir::Shape extra)
      : context_(context), make_(context), extra_(std::move(extra)) {}

  // Returns the operand of the inner reduction with the reduced dimensions last: kept dimensions
  // (with 1 for the reduced ones), extra.
  const Node* Start(const Node* inner) {
    const Node* x = inner->operand(0);
    IntList axes;
    for (int64_t i = 0; i < static_cast<int64_t>(x->shape().size()); ++i) {
      if (!absl::c_linear_search(ir::IntsOf(inner), i)) axes.push_back(i);
    }
    axes.insert(axes.end(), ir::IntsOf(inner).begin(), ir::IntsOf(inner).end());
    return make_.Reshape(make_.Permute(x, axes), WithExtra(inner->shape()));
  }

  const Node* Apply(const Node* movement, const Node* x) {
    IntList ints = movement->op() == Op::kReshape ? IntList{} : ir::IntsOf(movement);
    const int64_t rank = static_cast<int64_t>(movement->operand(0)->shape().size());
    switch (movement->op()) {
      case Op::kPermute:
        for (size_t i = 0; i < extra_.size(); ++i) ints.push_back(rank + static_cast<int64_t>(i));
        break;
      case Op::kPad:
        ints.resize(ints.size() + 2 * extra_.size(), 0);
        break;
      case Op::kShrink:
        for (const int64_t size : extra_) ints.insert(ints.end(), {0, size});
        break;
      case Op::kUnwindow:
        return ApplyUnwindow(movement, x);
      default:
        break;
    }
    if (movement->op() == Op::kReshape) return make_.Reshape(x, WithExtra(movement->shape()));
    return context_.Get(movement->op(), x->dtype(), WithExtra(movement->shape()), {x},
                        ir::IntsAttr{std::move(ints)});
  }

  const Node* Finish(const Node* outer, const Node* x) {
    IntList axes = ir::IntsOf(outer);
    const int64_t rank = static_cast<int64_t>(outer->shape().size());
    for (size_t i = 0; i < extra_.size(); ++i) axes.push_back(rank + static_cast<int64_t>(i));
    return make_.Reshape(make_.Reduce(outer->op(), x, axes), outer->shape());
  }

 private:
  ir::Shape WithExtra(ir::Shape shape) const {
    shape.insert(shape.end(), extra_.begin(), extra_.end());
    return shape;
  }

  // An unwindow needs the offset within the window as the last dimension.
  const Node* ApplyUnwindow(const Node* movement, const Node* x) {
    const int64_t offset = static_cast<int64_t>(movement->operand(0)->shape().size()) - 1;
    const Node* turned = make_.MoveAxis(x, offset, static_cast<int64_t>(x->shape().size()) - 1);
    ir::Shape shape = turned->shape();
    shape[ir::IntsOf(movement)[0]] = ir::IntsOf(movement)[1];
    const int64_t last = static_cast<int64_t>(shape.size()) - 1;
    const Node* undone =
        context_.Get(Op::kUnwindow, x->dtype(), std::move(shape), {turned}, movement->attribute());
    return make_.MoveAxis(undone, last, offset);
  }

  ir::Context& context_;
  TensorMaker make_;
  ir::Shape extra_;
};

}  // namespace

const Node* MergeReduction(ir::Context& context, const Node* node,
                           const std::function<bool(const Node*)>& single_use) {
  if (!IsReduction(node)) return node;
  std::vector<const Node*> movements;
  const Node* inner = node->operand(0);
  while (single_use(inner) && Commutes(node->op(), inner)) {
    movements.push_back(inner);
    inner = inner->operand(0);
  }
  if (inner->op() != node->op() || !single_use(inner)) return node;
  ir::Shape extra;
  for (const int64_t axis : ir::IntsOf(inner)) extra.push_back(inner->operand(0)->shape()[axis]);
  Lifter lifter(context, std::move(extra));
  const Node* x = lifter.Start(inner);
  for (size_t i = movements.size(); i-- > 0;) x = lifter.Apply(movements[i], x);
  return lifter.Finish(node, x);
}

}  // namespace kiln::partition
