#include "compiler/variables/probes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "compiler/ops/round.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::variables {

using ir::ConstValue;

Probes::Probes(std::vector<int64_t> base, std::vector<int64_t> steps,
               std::vector<int64_t> values_max)
    : base_(std::move(base)),
      steps_(std::move(steps)),
      values_max_(std::move(values_max)),
      points_{base_} {
  // The base, one and two steps along each variable, then the joint step: Fit relies on this order.
  std::vector<int64_t> joint = base_;
  for (size_t i = 0; i < base_.size(); ++i) {
    if (steps_[i] == 0) continue;
    for (const int64_t times : {1, 2}) {
      points_.push_back(base_);
      points_.back()[i] += times * steps_[i];
    }
    joint[i] += steps_[i];
  }
  points_.push_back(std::move(joint));
}

namespace {

using Wide = __int128;

// Sums of numbers up to this bound, over all variables, do not overflow 64 bits.
constexpr int64_t kLargest = ops::kElementsMax;

bool IsSmall(Wide number) { return -kLargest <= number && number <= kLargest; }

Wide WideAt(Wide constant, absl::Span<const Wide> coefficients, absl::Span<const int64_t> values) {
  for (size_t i = 0; i < coefficients.size(); ++i) constant += coefficients[i] * values[i];
  return constant;
}

}  // namespace

std::optional<Affine> Probes::Fit(absl::Span<const int64_t> seen) const {
  if (std::adjacent_find(seen.begin(), seen.end(), std::not_equal_to<>()) == seen.end()) {
    return Fixed(seen[0]);
  }
  std::vector<Wide> coefficients(base_.size(), 0);
  size_t next = 1;
  for (size_t i = 0; i < base_.size(); ++i) {
    if (steps_[i] == 0) continue;
    // The step is 1 or -1, so multiplying by it divides by it.
    coefficients[i] = (Wide{seen[next]} - seen[0]) * steps_[i];
    next += 2;
    if (!IsSmall(coefficients[i]) || !IsSmall(coefficients[i] * values_max_[i]))
      return std::nullopt;
  }
  const Wide constant = seen[0] - WideAt(0, coefficients, base_);
  if (!IsSmall(constant)) return std::nullopt;
  // The second step along a variable detects a nonlinear function, the joint step a product of
  // variables.
  for (size_t i = 0; i < points_.size(); ++i) {
    if (WideAt(constant, coefficients, points_[i]) != seen[i]) return std::nullopt;
  }
  Affine affine;
  affine.coefficients.assign(coefficients.begin(), coefficients.end());
  return AddScaled(Fixed(static_cast<int64_t>(constant)), affine, 1);
}

namespace {

// Returns the whole number that equals `value` or, for kReciprocal, its reciprocal.
std::optional<int64_t> WholeNumber(Formula::Kind kind, ir::DType dtype, const ConstValue& value) {
  if (!ir::IsFloat(dtype)) {
    if (kind == Formula::Kind::kReciprocal) return std::nullopt;
    return value.AsInt();
  }
  const double number = kind == Formula::Kind::kAffine ? value.AsDouble() : 1 / value.AsDouble();
  // A double holds whole numbers up to 2^53 exactly. NaN also returns here.
  if (!(std::abs(number) < 9e15)) return std::nullopt;
  const int64_t whole = std::llround(number);
  const bool exact = ConstantAt({kind, Fixed(whole)}, dtype, {}) == value;
  return exact ? std::optional<int64_t>(whole) : std::nullopt;
}

}  // namespace

std::optional<Formula> Probes::FitConstant(ir::DType dtype,
                                           absl::Span<const ConstValue> seen) const {
  for (const Formula::Kind kind : {Formula::Kind::kAffine, Formula::Kind::kReciprocal}) {
    std::vector<int64_t> numbers;
    for (const ConstValue& value : seen) {
      const std::optional<int64_t> number = WholeNumber(kind, dtype, value);
      if (!number.has_value()) break;
      numbers.push_back(*number);
    }
    if (numbers.size() != seen.size()) continue;
    if (std::optional<Affine> affine = Fit(numbers)) return Formula{kind, *std::move(affine)};
  }
  return std::nullopt;
}

ConstValue ConstantAt(const Formula& formula, ir::DType dtype, absl::Span<const int64_t> values) {
  const int64_t number = At(formula.number, values);
  if (!ir::IsFloat(dtype)) return ConstValue::Int(ops::WrapToInteger(dtype, number));
  const double value = formula.kind == Formula::Kind::kAffine ? static_cast<double>(number)
                                                              : 1.0 / static_cast<double>(number);
  return ConstValue::Float(ops::RoundToFloat(dtype, value));
}

std::vector<Probes> ProbesFor(absl::Span<const graph::Variable> variables) {
  if (variables.size() > kVariablesMax) return {};
  std::vector<int64_t> middle, low, high, up, down, values_max;
  for (const graph::Variable& variable : variables) {
    const int64_t last = variable.max - variable.min;
    if (last == 1 || variable.max > kLargest) return {};
    // Two steps from each base must stay within the bounds.
    middle.push_back(variable.min + (last >= 4 ? last / 2 - 1 : 0));
    low.push_back(variable.min + (last >= 3 ? 1 : 0));
    high.push_back(variable.max);
    up.push_back(last > 0 ? 1 : 0);
    down.push_back(last > 0 ? -1 : 0);
    values_max.push_back(variable.max);
  }
  return {Probes(middle, up, values_max), Probes(high, down, values_max),
          Probes(low, up, values_max)};
}

}  // namespace kiln::variables
