#include "compiler/partition/normalize/windows.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "compiler/partition/normalize/merge_reductions.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

// Crops or zero-pads the ends of dimensions to this shape.
const Node* Fit(TensorMaker& make, const Node* x, const ir::Shape& shape) {
  std::vector<int64_t> bounds, padding;
  for (size_t i = 0; i < shape.size(); ++i) {
    bounds.insert(bounds.end(), {0, std::min(x->shape()[i], shape[i])});
    padding.insert(padding.end(), {0, std::max<int64_t>(shape[i] - x->shape()[i], 0)});
  }
  return make.Pad(make.Shrink(x, bounds), padding);
}

}  // namespace

const Node* ReplaceWindow(ir::Context& context, const Node* node) {
  const int64_t axis = ir::IntsOf(node)[0];
  const int64_t size = ir::IntsOf(node)[1];
  if (ir::IntsOf(node)[2] != size || (size > 1 && ir::IntsOf(node)[3] != 1)) return node;
  TensorMaker make(context);
  const Node* x = node->operand(0);
  const int64_t count = node->shape()[axis];
  std::vector<int64_t> bounds;
  for (const int64_t extent : x->shape()) bounds.insert(bounds.end(), {0, extent});
  // Elements after the last whole window belong to no window.
  bounds[2 * axis + 1] = count * size;
  ir::Shape cut = x->shape();
  cut[axis] = size;
  cut.insert(cut.begin() + axis, count);
  const Node* pieces = make.Reshape(make.Shrink(x, bounds), cut);
  return make.MoveAxis(pieces, axis + 1, static_cast<int64_t>(cut.size()) - 1);
}

const Node* UnwindowSums::Replace(const Node* sum, const SingleUse& single_use) {
  const Node* unwindow = sum->operand(0);
  if (sum->op() != Op::kReduceSum || unwindow->op() != Op::kUnwindow) return nullptr;
  const int64_t size = unwindow->shape().back();
  const int64_t stride = ir::IntsOf(unwindow)[2];
  // The forms below require windows without dilation.
  if (size > 1 && ir::IntsOf(unwindow)[3] != 1) return nullptr;
  if (stride >= size) return Join(sum);
  return stride > 1 ? Decompose(sum, single_use) : nullptr;
}

// Concatenates windows without overlap.
const Node* UnwindowSums::Join(const Node* sum) {
  const Node* unwindow = sum->operand(0);
  const Node* x = unwindow->operand(0);
  const int64_t axis = ir::IntsOf(unwindow)[0];
  const int64_t last = static_cast<int64_t>(x->shape().size()) - 1;
  std::vector<int64_t> others = ir::IntsOf(sum);
  auto found = absl::c_find(others, last);
  if (found == others.end()) return nullptr;
  others.erase(found);
  TensorMaker make(context_);
  // Elements between windows have no contribution and are zero.
  ir::Shape wide = x->shape();
  wide[last] = ir::IntsOf(unwindow)[2];
  x = Fit(make, x, wide);
  ir::Shape joined = wide;
  joined.pop_back();
  joined[axis] *= wide[last];
  const Node* whole = make.Reshape(make.MoveAxis(x, last, axis + 1), joined);
  joined[axis] = unwindow->shape()[axis];
  whole = Fit(make, whole, joined);
  joined.push_back(1);
  return make.Reduce(Op::kReduceSum, make.Reshape(whole, joined), others);
}

const Node* UnwindowSums::Decompose(const Node* sum, const SingleUse& single_use) {
  const Node* unwindow = sum->operand(0);
  const auto last = static_cast<int64_t>(unwindow->shape().size()) - 1;
  if (ir::IntsOf(sum) != std::vector<int64_t>{last}) return nullptr;
  const int64_t axis = ir::IntsOf(unwindow)[0];
  const int64_t stride = ir::IntsOf(unwindow)[2];
  // T of the header; the sub-windows of T elements with stride 1 lengthen the axis by T - 1.
  const int64_t steps = (unwindow->shape().back() + stride - 1) / stride;
  Phased phased = OperandOf(unwindow, single_use);
  const int64_t length = phased.core->shape()[axis] + steps - 1;
  TensorMaker make(context_);

  ir::Shape shape = phased.core->shape();
  shape[last] = steps * stride;
  // Element t * s + r of a window becomes dimensions t and r. The phase r goes after those of other
  // axes, then t to the end, where unwindow expects it.
  const Node* core = Fit(make, phased.core, shape);
  shape[last] = steps;
  shape.insert(shape.begin() + last + 1, stride);
  core = make.Reshape(core, shape);
  core = make.MoveAxis(core, last + 1, static_cast<int64_t>(shape.size()) - 1);
  core = make.MoveAxis(core, last, static_cast<int64_t>(shape.size()) - 1);
  shape = core->shape();
  shape[axis] = length;
  core =
      context_.Get(Op::kUnwindow, core->dtype(), shape, {core}, ir::IntsAttr{{axis, length, 1, 1}});
  core = make.Reduce(Op::kReduceSum, core, {static_cast<int64_t>(shape.size()) - 1});
  shape.pop_back();
  phased.core = make.Reshape(MergeReduction(context_, core, single_use), shape);
  phased.phases.push_back({axis, stride, unwindow->shape()[axis]});
  phased.shape.pop_back();
  phased.shape[axis] = unwindow->shape()[axis];

  const Node* value = make.Reshape(Interleave(phased), sum->shape());
  phased_[value] = std::move(phased);
  return value;
}

// Returns the unwindow's operand. If that was interleaved from phases of other axes, returns the
// value before.
UnwindowSums::Phased UnwindowSums::OperandOf(const Node* unwindow,
                                             const SingleUse& single_use) const {
  const Node* x = unwindow->operand(0);
  const Node* value = x->op() == Op::kReshape ? x->operand(0) : x;
  const auto known = phased_.find(value);
  const bool usable = known != phased_.end() && known->second.shape == x->shape() &&
                      single_use(x) && single_use(value) &&
                      absl::c_none_of(known->second.phases, [&](const Phase& phase) {
                        return phase.axis == ir::IntsOf(unwindow)[0] ||
                               phase.axis + 1 == static_cast<int64_t>(x->shape().size());
                      });
  return usable ? known->second : Phased{x, x->shape(), {}};
}

const Node* UnwindowSums::Interleave(const Phased& phased) {
  TensorMaker make(context_);
  const auto rank = static_cast<int64_t>(phased.shape.size());
  std::vector<int64_t> order;
  ir::Shape joined;
  for (int64_t axis = 0; axis < rank; ++axis) {
    order.push_back(axis);
    joined.push_back(phased.core->shape()[axis]);
    for (size_t i = 0; i < phased.phases.size(); ++i) {
      if (phased.phases[i].axis != axis) continue;
      // Element s * q + r: moves the phase directly after its axis, then joins both to one
      // dimension.
      order.push_back(rank + static_cast<int64_t>(i));
      joined.back() *= phased.phases[i].stride;
    }
  }
  return Fit(make, make.Reshape(make.Permute(phased.core, order), joined), phased.shape);
}

}  // namespace kiln::partition
