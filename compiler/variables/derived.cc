#include "compiler/variables/derived.h"

namespace kiln::variables {
namespace {

// Requires: the values are not negative, so that the quotient is rounded down.
int64_t ValueOf(const Derived& derived, int64_t left, int64_t right) {
  if (derived.kind == Derived::Kind::kProduct) return left * right;
  return (left + derived.shift) / derived.divisor;
}

}  // namespace

std::vector<int64_t> WithDerived(absl::Span<const int64_t> values,
                                 absl::Span<const Derived> derived) {
  std::vector<int64_t> all(values.begin(), values.end());
  for (const Derived& one : derived) {
    all.push_back(ValueOf(one, values[one.left], values[one.right]));
  }
  return all;
}

std::vector<graph::Variable> WithDerived(absl::Span<const graph::Variable> variables,
                                         absl::Span<const Derived> derived) {
  std::vector<graph::Variable> all(variables.begin(), variables.end());
  for (const Derived& one : derived) {
    const graph::Variable& left = variables[one.left];
    const graph::Variable& right = variables[one.right];
    // Both grow with each variable.
    all.push_back({"", ValueOf(one, left.min, right.min), ValueOf(one, left.max, right.max)});
  }
  return all;
}

}  // namespace kiln::variables
