// Rows of the reductions. Over no elements a sum is 0, a product is 1, and a maximum is the dtype's
// lowest value (-inf for floats).
#include <cmath>
#include <limits>

#include "compiler/ops/primitives/evaluations.h"
#include "compiler/ops/primitives/gradients.h"
#include "compiler/ops/round.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

OpDef Reduction(std::string_view name, Op op, DTypeClass operand_class, GradientFn gradient,
                EvaluateFn evaluate, std::string_view doc) {
  return {.name = name,
          .kind = Kind::kReduce,
          .op = op,
          .operands = {"x"},
          .attributes = ReduceAttributes(),
          .shape_rule = kReduceShape,
          .dtype_rule = DTypeRule::kSame,
          .operand_class = operand_class,
          .gradient = gradient,
          .evaluate = evaluate,
          .doc = doc};
}

// Calls `fold` with the index of each element of the operand, in order, and of its destination in
// the result.
template <typename Fn>
void ForEachDestination(const Node* node, const HostTensor& x, Fn fold) {
  const std::vector<int64_t> strides = StridesOf(node->shape());
  // Reduced dimensions are kept with size 1.
  const auto step = [&](size_t d) { return node->shape()[d] == 1 ? 0 : strides[d]; };
  const size_t dimensions = x.shape.size();
  if (dimensions == 0) return fold(0, 0);
  const int64_t columns = x.shape.back(), rows = columns == 0 ? 0 : x.size() / columns;
  const int64_t last_step = step(dimensions - 1);
  std::vector<int64_t> point(dimensions, 0);
  int64_t i = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t destination = 0;
    for (size_t d = 0; d + 1 < dimensions; ++d) destination += point[d] * step(d);
    for (int64_t column = 0; column < columns; ++column)
      fold(i++, destination + column * last_step);
    for (size_t d = dimensions - 1; d-- > 0;) {
      if (++point[d] < x.shape[d]) break;
      point[d] = 0;
    }
  }
}

// Folds every element into its destination; accumulators are double or int64, rounded or truncated
// once at the end.
template <typename FloatFn, typename IntFn>
HostTensor Fold(const Node* node, const HostTensor& x, double first_float, int64_t first_int,
                FloatFn fold_floats, IntFn fold_integers) {
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int64_t size = result.size();
  if (ir::IsFloat(x.dtype)) {
    std::vector<double> sums(size, first_float);
    ForEachDestination(node, x, [&](int64_t from, int64_t to) {
      sums[to] = fold_floats(sums[to], x.Float(from));
    });
    for (int64_t i = 0; i < size; ++i) result.SetFloat(i, sums[i]);
  } else {
    std::vector<int64_t> sums(size, first_int);
    ForEachDestination(node, x, [&](int64_t from, int64_t to) {
      sums[to] = fold_integers(sums[to], x.Int(from));
    });
    for (int64_t i = 0; i < size; ++i) result.SetInt(i, sums[i]);
  }
  return result;
}

int64_t LowestInteger(DType dtype) {
  if (!ir::IsSigned(dtype)) return 0;
  return FloatToInteger(dtype, -std::numeric_limits<double>::infinity());
}

}  // namespace

absl::StatusOr<HostTensor> EvaluateSum(const Node* node, HostOperands operands) {
  return Fold(
      node, *operands[0], 0, 0, [](double a, double b) { return a + b; },
      [](int64_t a, int64_t b) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      });
}

absl::StatusOr<HostTensor> EvaluateProd(const Node* node, HostOperands operands) {
  return Fold(
      node, *operands[0], 1, 1, [](double a, double b) { return a * b; },
      [](int64_t a, int64_t b) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      });
}

absl::StatusOr<HostTensor> EvaluateMax(const Node* node, HostOperands operands) {
  const DType dtype = node->dtype();
  const bool is_uint64 = dtype == DType::kUInt64;
  return Fold(
      node, *operands[0], -std::numeric_limits<double>::infinity(), LowestInteger(dtype),
      // fmax alone would drop NaN.
      [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b); },
      [is_uint64](int64_t a, int64_t b) {
        const bool less = is_uint64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
        return less ? b : a;
      });
}

std::vector<OpDef> ReduceOps() {
  return {
      Reduction("sum", Op::kReduceSum, DTypeClass::kNumeric, SumGradient, EvaluateSum,
                "The sum over axes, in x's dtype; integers wrap"),
      Reduction("prod", Op::kReduceProd, DTypeClass::kNumeric, ProdGradient, EvaluateProd,
                "The product over axes, in x's dtype; integers wrap"),
      Reduction("max", Op::kReduceMax, DTypeClass::kAny, MaxGradient, EvaluateMax,
                "The largest over axes; NaN if any is. Equal ones share the gradient equally"),
  };
}

}  // namespace kiln::ops
