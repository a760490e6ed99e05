#include "compiler/variables/affine.h"

#include <algorithm>

namespace kiln::variables {

Affine Fixed(int64_t value) { return {value, {}}; }

Affine AddScaled(const Affine& a, const Affine& b, int64_t factor) {
  Affine sum = a;
  sum.constant += factor * b.constant;
  sum.coefficients.resize(std::max(a.coefficients.size(), b.coefficients.size()), 0);
  for (size_t i = 0; i < b.coefficients.size(); ++i) {
    sum.coefficients[i] += factor * b.coefficients[i];
  }
  // Equal functions have one form, so that they compare equal.
  while (!sum.coefficients.empty() && sum.coefficients.back() == 0) sum.coefficients.pop_back();
  return sum;
}

int64_t At(const Affine& affine, absl::Span<const int64_t> values) {
  int64_t sum = affine.constant;
  for (size_t i = 0; i < affine.coefficients.size(); ++i) {
    sum += affine.coefficients[i] * values[i];
  }
  return sum;
}

int64_t Least(const Affine& affine, absl::Span<const graph::Variable> variables) {
  int64_t sum = affine.constant;
  for (size_t i = 0; i < affine.coefficients.size(); ++i) {
    const int64_t coefficient = affine.coefficients[i];
    // A linear function is smallest where each term is smallest.
    sum += coefficient * (coefficient < 0 ? variables[i].max : variables[i].min);
  }
  return sum;
}

int64_t Most(const Affine& affine, absl::Span<const graph::Variable> variables) {
  return -Least(AddScaled(Affine{}, affine, -1), variables);
}

}  // namespace kiln::variables
