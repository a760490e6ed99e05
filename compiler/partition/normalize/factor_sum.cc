#include "compiler/partition/normalize/factor_sum.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "compiler/partition/reads.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

// Bound on the visited nodes of one sum's expression, so that many sums over a large expression
// take linear time.
constexpr int kNodesMax = 32;

using KnownSum = std::function<const Node*(const Node*)>;

const Node* BehindShapes(const Node* node) {
  while (node->op() == Op::kExpand || node->op() == Op::kReshape) node = node->operand(0);
  return node;
}

class SumFactorer {
 public:
  SumFactorer(ir::Context& context, const Node* sum)
      : context_(context),
        make_(context),
        sum_(sum),
        axes_(sum->attr<ir::IntsAttr>().values),
        shape_(sum->shape()) {
    for (const int64_t axis : axes_) points_ *= sum->operand(0)->shape()[axis];
  }

  // For a value that is known to sum to zero, returns that zero (or NaN) without the sum; else
  // null.
  const Node* Zero(const Node* node) {
    if (++nodes_ > kNodesMax) return nullptr;
    switch (node->op()) {
      case Op::kNeg: {
        const Node* inner = Zero(node->operand(0));
        return inner == nullptr ? nullptr : Like(node, {inner});
      }
      case Op::kMul:
        return ZeroProduct(node);
      case Op::kAdd:
      case Op::kSub: {
        if (const Node* mean = Mean(node); mean != nullptr) {
          // The mean is NaN or infinite if any x is, and then mean * 0 is NaN, like the sum.
          return Like(sum_, Op::kMul, {mean, make_.Zeros(mean->dtype(), shape_)});
        }
        // Both terms must sum to zero: one sum says nothing about the other.
        const Node* a = Zero(node->operand(0));
        const Node* b = a == nullptr ? nullptr : Zero(node->operand(1));
        return b == nullptr ? nullptr : Like(node, {a, b});
      }
      default:
        return nullptr;
    }
  }

  // Derives the sum from one that is computed anyway.
  const Node* Known(const Node* node, const KnownSum& known) {
    if (++nodes_ > kNodesMax) return nullptr;
    if (node->op() == Op::kNeg) {
      const Node* inner = SumOf(node->operand(0), known);
      return inner == nullptr ? nullptr : Like(node, {inner});
    }
    if (node->op() != Op::kMul) return nullptr;
    for (const int i : {0, 1}) {
      const Node* factor = Once(node->operand(i));
      if (factor == nullptr) continue;
      const Node* rest = SumOf(node->operand(1 - i), known);
      if (rest != nullptr) return Like(node, {rest, factor});
    }
    return nullptr;
  }

 private:
  const Node* Like(const Node* node, std::vector<const Node*> operands) {
    return Like(node, node->op(), std::move(operands));
  }
  const Node* Like(const Node* node, Op op, std::vector<const Node*> operands) {
    return context_.Get(op, node->dtype(), shape_, std::move(operands), {});
  }

  const Node* SumOf(const Node* node, const KnownSum& known) {
    const Node* sum = context_.WithOperands(sum_, {node});
    const Node* form = known(sum);
    return form != nullptr ? form : Known(node, known);
  }

  const Node* ZeroProduct(const Node* node) {
    for (const int i : {0, 1}) {
      const Node* factor = Once(node->operand(i));
      if (factor == nullptr) continue;
      const Node* inner = Zero(node->operand(1 - i));
      if (inner != nullptr) return Like(node, {inner, factor});
    }
    return nullptr;
  }

  // Returns a value that is constant along all summed axes, with size 1 there; else null.
  const Node* Once(const Node* node) {
    if (++nodes_ > kNodesMax) return nullptr;
    if (node->op() == Op::kExpand) {
      const Node* inner = node->operand(0);
      const bool same = std::all_of(axes_.begin(), axes_.end(),
                                    [&](int64_t axis) { return inner->shape()[axis] == 1; });
      return same ? make_.Expand(inner, shape_) : nullptr;
    }
    // If all operands are constant along the axes, so is an elementwise value of them.
    if (!IsElementwise(node) || node->op() == Op::kBitcast) return nullptr;
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) {
      operands.push_back(Once(operand));
      if (operands.back() == nullptr) return nullptr;
    }
    return context_.Get(node->op(), node->dtype(), shape_, std::move(operands), node->attribute());
  }

  // For x - mean(x), with the mean over the summed axes, returns the mean with the sum's shape.
  const Node* Mean(const Node* node) {
    if (node->op() != Op::kSub) return nullptr;
    const Node* mean = Once(node->operand(1));
    if (mean == nullptr) return nullptr;
    const Node* product = BehindShapes(mean);
    if (product->op() != Op::kMul) return nullptr;
    for (const int i : {0, 1}) {
      const Node* sum = BehindShapes(product->operand(i));
      const Node* count = BehindShapes(product->operand(1 - i));
      if (sum->op() != Op::kReduceSum || count->op() != Op::kConst) continue;
      const bool same =
          sum->operand(0) == node->operand(0) && sum->attribute() == sum_->attribute();
      if (!same) continue;
      // The constant is 1 / n rounded to its dtype, so n times it is only nearly 1.
      const double error =
          count->attr<ir::ConstValue>().AsDouble() * static_cast<double>(points_) - 1;
      if (std::abs(error) < 1e-6) return mean;
    }
    return nullptr;
  }

  ir::Context& context_;
  TensorMaker make_;
  const Node* sum_;
  const std::vector<int64_t>& axes_;
  const ir::Shape& shape_;
  int64_t points_ = 1;
  int nodes_ = 0;
};

}  // namespace

const Node* FactorSum(ir::Context& context, const Node* sum,
                      const std::function<const Node*(const Node*)>& known) {
  const bool wide = sum->dtype() == ir::DType::kFloat32 || sum->dtype() == ir::DType::kFloat64;
  if (sum->op() != Op::kReduceSum || !wide) return nullptr;
  const Node* zero = SumFactorer(context, sum).Zero(sum->operand(0));
  return zero != nullptr ? zero : SumFactorer(context, sum).Known(sum->operand(0), known);
}

}  // namespace kiln::partition
