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
               std::vector<int64_t> values_max, Reach reach)
    : base_(std::move(base)),
      steps_(std::move(steps)),
      values_max_(std::move(values_max)),
      along_(reach.along),
      derives_(reach.derives),
      points_{base_},
      first_steps_(base_.size(), 0) {
  std::vector<int64_t> joint = base_;
  for (size_t i = 0; i < base_.size(); ++i) {
    if (steps_[i] == 0) continue;
    first_steps_[i] = points_.size();
    for (int64_t times = 1; times <= reach.along; ++times) {
      points_.push_back(base_);
      points_.back()[i] += times * steps_[i];
    }
    joint[i] += reach.joint * steps_[i];
  }
  points_.push_back(std::move(joint));
  for (size_t i = 0; i < base_.size() && derives_; ++i) {
    for (size_t j = i + 1; j < base_.size(); ++j) {
      if (steps_[i] == 0 || steps_[j] == 0) continue;
      pairs_.push_back({i, j, points_.size()});
      points_.push_back(base_);
      points_.back()[i] += steps_[i];
      points_.back()[j] += steps_[j];
    }
  }
}

namespace {

using Wide = __int128;

// Sums of numbers up to this bound, over all variables and derived ones, do not overflow 64 bits.
constexpr int64_t kLargest = ops::kElementsMax;
constexpr size_t kDerivedMax = 32;

bool IsSmall(Wide number) { return -kLargest <= number && number <= kLargest; }

Wide WideAt(Wide constant, absl::Span<const Wide> coefficients, absl::Span<const int64_t> values) {
  for (size_t i = 0; i < coefficients.size(); ++i) constant += coefficients[i] * values[i];
  return constant;
}

bool AllEqual(absl::Span<const Wide> numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::not_equal_to<>()) == numbers.end();
}

std::vector<Wide> Differences(absl::Span<const Wide> numbers) {
  std::vector<Wide> differences;
  for (size_t t = 0; t + 1 < numbers.size(); ++t) {
    differences.push_back(numbers[t + 1] - numbers[t]);
  }
  return differences;
}

// Steps of a function that a quotient adds to: `usual`, but `other` at one of every `period`.
struct Jumps {
  size_t period = 0;
  size_t first = 0;
  Wide usual = 0;
  Wide other = 0;
};

std::optional<Jumps> JumpsOf(absl::Span<const Wide> steps) {
  // A period is only believed if it is seen twice.
  for (size_t period = 2; 2 * period <= steps.size(); ++period) {
    if (!std::equal(steps.begin() + static_cast<int64_t>(period), steps.end(), steps.begin())) {
      continue;
    }
    for (size_t first = 0; first < period; ++first) {
      std::vector<Wide> usual(steps.begin(), steps.begin() + static_cast<int64_t>(period));
      usual.erase(usual.begin() + static_cast<int64_t>(first));
      // If the two take turns, the smaller one counts as usual.
      const bool smaller = period > 2 || usual[0] < steps[first];
      if (AllEqual(usual) && smaller) return Jumps{period, first, usual[0], steps[first]};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

// Finds the coefficients of one function, first along single variables, then of products.
class Probes::Fitting {
 public:
  Fitting(const Probes& probes, absl::Span<const int64_t> seen, std::vector<Derived>* derived)
      : probes_(probes),
        seen_(seen),
        derived_(derived),
        derived_before_(derived->size()),
        coefficients_(probes.base_.size() + derived->size(), 0) {}

  std::optional<Affine> Run() {
    std::optional<Affine> affine = Try();
    // Variables that did not help are dropped.
    if (!affine.has_value()) derived_->resize(derived_before_);
    return affine;
  }

 private:
  std::optional<Affine> Try() {
    for (size_t i = 0; i < probes_.base_.size(); ++i) {
      if (probes_.steps_[i] != 0 && !FitAlong(static_cast<int>(i))) return std::nullopt;
    }
    for (const Pair& pair : probes_.pairs_) {
      const Wide cross = Wide{seen_[pair.point]} - seen_[probes_.first_steps_[pair.first]] -
                         seen_[probes_.first_steps_[pair.second]] + seen_[0];
      if (cross == 0) continue;
      const auto first = static_cast<int>(pair.first);
      const auto second = static_cast<int>(pair.second);
      if (!Add({Derived::Kind::kProduct, first, second}, cross)) return std::nullopt;
      // Along either variable, the product looked like a multiple of it.
      coefficients_[pair.first] -= cross * probes_.base_[pair.second];
      coefficients_[pair.second] -= cross * probes_.base_[pair.first];
    }
    return Checked();
  }

  bool FitAlong(int variable) {
    std::vector<Wide> values = {seen_[0]};
    for (size_t t = 0; t < probes_.along_; ++t) {
      values.push_back(seen_[probes_.first_steps_[variable] + t]);
    }
    const std::vector<Wide> steps = Differences(values);
    const int64_t base = probes_.base_[variable];
    if (AllEqual(steps)) {
      // The step is 1 or -1, so multiplying by it divides by it.
      coefficients_[variable] += steps[0] * probes_.steps_[variable];
      return true;
    }
    if (!probes_.derives_) return false;
    const std::vector<Wide> curvature = Differences(steps);
    if (AllEqual(curvature) && curvature[0] % 2 == 0) {
      const Wide square = curvature[0] / 2;
      coefficients_[variable] += steps[0] - square * (2 * base + 1);
      return Add({Derived::Kind::kProduct, variable, variable}, square);
    }
    const std::optional<Jumps> jumps = JumpsOf(steps);
    if (!jumps.has_value()) return false;
    const auto divisor = static_cast<int64_t>(jumps->period);
    // The value after the first jump is divisible.
    const int64_t after = base + static_cast<int64_t>(jumps->first) + 1;
    const int64_t shift = (divisor - after % divisor) % divisor;
    coefficients_[variable] += jumps->usual;
    return Add({Derived::Kind::kQuotient, variable, 0, shift, divisor},
               jumps->other - jumps->usual);
  }

  bool Add(const Derived& wanted, Wide coefficient) {
    size_t number = std::find(derived_->begin(), derived_->end(), wanted) - derived_->begin();
    if (number == derived_->size()) {
      if (number == kDerivedMax) return false;
      derived_->push_back(wanted);
      coefficients_.push_back(0);
    }
    coefficients_[probes_.base_.size() + number] += coefficient;
    return true;
  }

  // Returns the function if it has the values seen, and is small.
  std::optional<Affine> Checked() const {
    for (const Derived& derived : *derived_) {
      const bool is_product = derived.kind == Derived::Kind::kProduct;
      if (is_product &&
          !IsSmall(Wide{probes_.values_max_[derived.left]} * probes_.values_max_[derived.right])) {
        return std::nullopt;
      }
    }
    const std::vector<int64_t> most = WithDerived(probes_.values_max_, *derived_);
    for (size_t i = 0; i < coefficients_.size(); ++i) {
      if (!IsSmall(coefficients_[i]) || !IsSmall(coefficients_[i] * most[i])) return std::nullopt;
    }
    const std::vector<int64_t> base = WithDerived(probes_.base_, *derived_);
    const Wide constant = seen_[0] - WideAt(0, coefficients_, base);
    if (!IsSmall(constant)) return std::nullopt;
    // The points that took no part so far detect other functions.
    for (size_t i = 0; i < seen_.size(); ++i) {
      const std::vector<int64_t> point = WithDerived(probes_.points_[i], *derived_);
      if (WideAt(constant, coefficients_, point) != seen_[i]) return std::nullopt;
    }
    Affine affine;
    affine.coefficients.assign(coefficients_.begin(), coefficients_.end());
    return AddScaled(Fixed(static_cast<int64_t>(constant)), affine, 1);
  }

  const Probes& probes_;
  absl::Span<const int64_t> seen_;
  std::vector<Derived>* derived_;
  const size_t derived_before_;
  std::vector<Wide> coefficients_;  // of the variables, then of the derived ones
};

std::optional<Affine> Probes::Fit(absl::Span<const int64_t> seen,
                                  std::vector<Derived>* derived) const {
  if (std::adjacent_find(seen.begin(), seen.end(), std::not_equal_to<>()) == seen.end()) {
    return Fixed(seen[0]);
  }
  return Fitting(*this, seen, derived).Run();
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

std::optional<Formula> Probes::FitConstant(ir::DType dtype, absl::Span<const ConstValue> seen,
                                           std::vector<Derived>* derived) const {
  for (const Formula::Kind kind : {Formula::Kind::kAffine, Formula::Kind::kReciprocal}) {
    std::vector<int64_t> numbers;
    for (const ConstValue& value : seen) {
      const std::optional<int64_t> number = WholeNumber(kind, dtype, value);
      if (!number.has_value()) break;
      numbers.push_back(*number);
    }
    if (numbers.size() != seen.size()) continue;
    if (std::optional<Affine> affine = Fit(numbers, derived))
      return Formula{kind, *std::move(affine)};
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

namespace {

// Steps of probes that derive, over all variables: windows are found that move by up to half as
// many elements.
constexpr int64_t kSteps = 32;

}  // namespace

std::vector<Probes> ProbesFor(absl::Span<const graph::Variable> variables) {
  if (variables.size() > kVariablesMax) return {};
  std::vector<int64_t> middle, low, high, up, down, values_max;
  int64_t varying = 0;
  int64_t span = kSteps;    // within the bounds of all
  int64_t beyond = kSteps;  // the middle
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
    if (last == 0) continue;
    ++varying;
    span = std::min(span, last);
    // At the largest sizes, what fills up to them is omitted.
    beyond = std::min(beyond, std::max<int64_t>(1, variable.max - 1 - middle.back()));
  }
  // The joint step is long: a quotient can be the same at a few neighbouring values.
  std::vector<Probes> probes = {Probes(middle, up, values_max, {.joint = beyond})};
  if (varying > 0 && varying <= kSteps / 4) {
    // At the lowest values, where parts are empty or of size 1, graphs often have another form.
    const int64_t along = std::max<int64_t>(2, std::min(span - 3, kSteps / varying));
    std::vector<int64_t> base;
    for (size_t i = 0; i < variables.size(); ++i) {
      base.push_back(
          std::min(middle[i], std::max(variables[i].min, variables[i].max - 1 - along * up[i])));
    }
    probes.emplace_back(base, up, values_max, Probes::Reach{along, along, /*derives=*/true});
  }
  probes.emplace_back(high, down, values_max, Probes::Reach());
  probes.emplace_back(low, up, values_max, Probes::Reach());
  // The graph may have another form a little beyond the middle.
  if (beyond > 1) probes.emplace_back(middle, up, values_max, Probes::Reach());
  return probes;
}

}  // namespace kiln::variables
