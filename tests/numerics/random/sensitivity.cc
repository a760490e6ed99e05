#include "tests/numerics/random/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/node.h"
#include "compiler/ops/op_def.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ops::HostTensor;

// The kind of rounding of an op's result.
enum class Rounding {
  kNone,      // it only moves or selects numbers
  kBasic,     // add, sub, mul: exact if all numbers are short
  kSum,       // a sum of many
  kFunction,  // computed by a formula
};

Rounding RoundingOf(const Node* node) {
  switch (node->op()) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
      return Rounding::kBasic;
    case Op::kReduceSum:
    case Op::kScatterElements:
      return Rounding::kSum;
    case Op::kReciprocal:
    case Op::kSqrt:
    case Op::kExp2:
    case Op::kLog2:
    case Op::kSin:
    case Op::kDiv:
    case Op::kPow:
    case Op::kReduceProd:
      return Rounding::kFunction;
    default:
      return Rounding::kNone;
  }
}

// Returns half the distance from 1 to the next number; of a dtype that no op computes in,
// float32's.
double UnitOf(DType dtype) {
  if (!ir::IsFloat(dtype) || ir::IsFloat8(dtype)) return 0x1p-24;
  return std::ldexp(0.5, -ir::FormatOf(dtype).mantissa_bits);
}

bool IsHalf(DType dtype) { return ir::IsShortFloat(dtype) && !ir::IsFloat8(dtype); }

// The allowed error of a sum of moved numbers, in units of the largest one.
constexpr double kNoise = 64;

double LargestOf(const HostTensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double magnitude = std::abs(tensor.Float(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

// Returns the element of `sums` to which the i-th term belongs: both have the same rank, and `sums`
// has extent 1 along the summed axes.
int64_t SumOfTerm(const HostTensor& sums, const HostTensor& terms, int64_t i) {
  int64_t element = 0, weight = 1;
  for (size_t axis = terms.shape.size(); axis-- > 0;) {
    const int64_t place = i % terms.shape[axis];
    i /= terms.shape[axis];
    if (sums.shape[axis] > 1) element += place * weight;
    weight *= sums.shape[axis];
  }
  return element;
}

// Returns the error of the sums if their terms are added one by one, with each partial sum rounded.
// Many equal terms are all rounded in the same direction, which no estimate from the terms' sizes
// shows.
template <typename Float>
double OffWhenAddedInOrder(const HostTensor& sums, const HostTensor& terms) {
  std::vector<Float> rounded(sums.size(), 0);
  std::vector<long double> exact(sums.size(), 0);
  for (int64_t i = 0; i < terms.size(); ++i) {
    const int64_t sum = SumOfTerm(sums, terms, i);
    rounded[sum] += static_cast<Float>(terms.Float(i));
    exact[sum] += static_cast<long double>(terms.Float(i));
  }
  double highest = 0;
  for (size_t i = 0; i < rounded.size(); ++i) {
    const double off = static_cast<double>(std::abs(rounded[i] - exact[i]));
    if (std::isfinite(off)) highest = std::max(highest, off);
  }
  return highest;
}

// Returns true if a product of this many numbers may exceed infinity in between, depending on their
// order.
bool MayOverflow(const HostTensor& factors, const HostTensor& result) {
  constexpr double kDoublingsMax = 100;
  const double count = static_cast<double>(factors.size()) /
                       static_cast<double>(std::max<int64_t>(1, result.size()));
  return count * std::log2(std::max(1.0, LargestOf(factors))) > kDoublingsMax;
}

double Apart(const HostTensor& value, const HostTensor& moved, int64_t i) {
  if (!ir::IsFloat(value.dtype)) {
    return value.Int(i) == moved.Int(i) ? 0 : std::numeric_limits<double>::infinity();
  }
  const double a = value.Float(i);
  const double b = moved.Float(i);
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / (1 + std::abs(a));
}

}  // namespace

bool IsShort(double value) {
  return std::abs(value) < 4096 && std::trunc(value * 1024) == value * 1024;
}

std::vector<const Node*> Sensitivity::Unknown(const Node* root) const {
  std::vector<const Node*> unknown;
  absl::flat_hash_set<const Node*> seen;
  std::vector<std::pair<const Node*, int>> path;
  const auto enter = [&](const Node* node) {
    if (!values_.contains(node) && seen.insert(node).second) path.emplace_back(node, 0);
  };
  enter(root);
  while (!path.empty()) {
    auto& [node, next] = path.back();
    if (next < static_cast<int>(node->operands().size())) {
      enter(node->operand(next++));
    } else {
      unknown.push_back(node);
      path.pop_back();
    }
  }
  return unknown;
}

absl::Status Sensitivity::Evaluate(const Node* root) {
  for (const Node* node : Unknown(root)) {
    if (auto status = EvaluateNode(node); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Sensitivity::EvaluateNode(const Node* node) {
  Values values;
  if (node->op() == Op::kInput) {
    values.fill(inputs_.at(node->attr<ir::InputAttr>().index));
    values_.emplace(node, std::move(values));
    return absl::OkStatus();
  }
  const ops::EvaluateFn evaluate = ops::DefOf(node->op()).evaluate;
  if (evaluate == nullptr) return absl::InvalidArgumentError("a request has no value");
  for (int k = 0; k < kEvaluations; ++k) {
    std::vector<const HostTensor*> operands;
    for (const Node* operand : node->operands()) operands.push_back(&values_.at(operand)[k]);
    auto result = evaluate(node, operands);
    if (!result.ok()) return result.status();
    if (k > 0 && ir::IsFloat(node->dtype())) Move(node, operands, k == kCollapsed, *result);
    values[k] = *std::move(result);
  }
  values_.emplace(node, std::move(values));
  return absl::OkStatus();
}

void Sensitivity::Move(const Node* node, absl::Span<const HostTensor* const> operands,
                       bool collapses, HostTensor& result) {
  const Rounding rounding = RoundingOf(node);
  if (rounding == Rounding::kNone) return;
  // Compiled programs round float16 and bfloat16 as the interpreter does, except when digits beyond
  // float32's would have decided; then they may round to the neighbour: never for +, - and *,
  // sometimes for functions and sums.
  if (node->op() == Op::kReduceProd && MayOverflow(*operands[0], result)) {
    for (int64_t i = 0; i < result.size(); ++i) result.SetFloat(i, std::nan(""));
    return;
  }
  const bool is_half = IsHalf(node->dtype());
  const double unit = UnitOf(node->dtype());
  double scale = 0;
  if (rounding == Rounding::kSum) {
    const HostTensor& terms = *operands.back();
    const double count = static_cast<double>(terms.size()) /
                         static_cast<double>(std::max<int64_t>(1, result.size()));
    scale = LargestOf(terms) * std::sqrt(std::max(1.0, count));
    if (node->op() == Op::kReduceSum) {
      const double off = node->dtype() == DType::kFloat64
                             ? OffWhenAddedInOrder<double>(result, terms)
                             : OffWhenAddedInOrder<float>(result, terms);
      // An eighth: a result is moved by a few units, and the tolerance is sixteen times that.
      scale = std::max(scale, off / unit / 8);
    }
    for (int64_t i = 0; i < terms.size() && scale > 0; ++i) {
      if (!IsShort(terms.Float(i))) break;
      if (i + 1 == terms.size()) scale = 0;
    }
  }
  for (int64_t i = 0; i < result.size(); ++i) {
    const double value = result.Float(i);
    if (!std::isfinite(value)) continue;
    double largest = std::abs(value);
    if (rounding == Rounding::kSum) {
      if (scale == 0 && IsShort(value)) continue;
      largest = std::max(largest, scale);
    } else if (rounding == Rounding::kBasic) {
      const double a = operands[0]->Float(i);
      const double b = operands[1]->Float(i);
      if (IsShort(a) && IsShort(b) && IsShort(value)) continue;
      // A product that is added without having been rounded.
      if (node->op() != Op::kMul) largest = std::max({largest, std::abs(a), std::abs(b)});
    } else if (is_half ? std::trunc(value * 4) == value * 4 : IsShort(value)) {
      continue;  // probably exact: the exponential of 0, the root of 9
    }
    // By at least half of the maximum, since a single element has only two chances to show its
    // effect.
    const double half = static_cast<double>(random_() >> 11) * 0x1p-54 + 0.5;
    const double fraction = random_() % 2 == 0 ? half : -half;
    // If numbers cancel, the remainder is their rounding error, and it is zero if another order has
    // none: x - mean(x) of equal x.
    if (collapses && std::abs(value) <= kNoise * unit * largest && std::abs(value) < largest) {
      result.SetFloat(i, 0);
    } else if (!is_half) {
      result.SetFloat(i, value + 4 * unit * largest * fraction);
    } else if (rounding != Rounding::kBasic) {
      result.SetFloat(i, value + std::copysign(1.1, fraction) * unit * std::abs(value));
    }
  }
}

Measured Sensitivity::Measure(const Node* node) const {
  const Values& values = values_.at(node);
  const HostTensor& value = values[0];
  Measured measured;
  measured.is_short = true;
  for (int64_t i = 0; i < value.size(); ++i) {
    for (int k = 1; k < kEvaluations; ++k) {
      measured.spread = std::max(measured.spread, Apart(value, values[k], i));
    }
    const double number = value.Number(i);
    measured.has_zero = measured.has_zero || number == 0;
    if (!std::isfinite(number)) {
      ++measured.not_finite;
      continue;
    }
    measured.largest = std::max(measured.largest, std::abs(number));
    measured.is_short = measured.is_short && IsShort(number);
  }
  return measured;
}

}  // namespace kiln::numerics
