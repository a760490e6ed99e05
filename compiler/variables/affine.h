// Numbers that depend on the variables: constant + sum of coefficient * variable.
#ifndef KILN_COMPILER_VARIABLES_AFFINE_H_
#define KILN_COMPILER_VARIABLES_AFFINE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler/graph/variable.h"

namespace kiln::variables {

// Coefficients are indexed like the graph's list of variables, followed by its derived ones
// (derived.h). Trailing zero coefficients are omitted, so that a fixed number has none.
struct Affine {
  int64_t constant = 0;
  std::vector<int64_t> coefficients;

  bool is_fixed() const { return coefficients.empty(); }
  bool operator==(const Affine&) const = default;
  auto operator<=>(const Affine&) const = default;
};

Affine Fixed(int64_t value);
// a + factor * b.
Affine AddScaled(const Affine& a, const Affine& b, int64_t factor);

int64_t At(const Affine& affine, absl::Span<const int64_t> values);
// Bounds over all values within the variables' bounds; where derived ones take part, the numbers
// may not reach them.
int64_t Least(const Affine& affine, absl::Span<const graph::Variable> variables);
int64_t Most(const Affine& affine, absl::Span<const graph::Variable> variables);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_AFFINE_H_
