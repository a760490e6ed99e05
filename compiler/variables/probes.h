// The values at which a graph is looked at, and the formulas that fit what was seen there. Internal
// to generalize.cc.
#ifndef KILN_COMPILER_VARIABLES_PROBES_H_
#define KILN_COMPILER_VARIABLES_PROBES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

// A base, one and two steps from it along every variable, and a step along all of them together:
// enough to tell affine functions from others.
class Probes {
 public:
  // `step` is 1 or -1 along each variable that has more than one value; base + 2 * step is within
  // the bounds, whose upper ends are `most`.
  Probes(std::vector<int64_t> base, std::vector<int64_t> steps, std::vector<int64_t> most);

  const std::vector<std::vector<int64_t>>& points() const { return points_; }

  // The function with these values at the points, if one is affine; and so small that no sum with
  // it leaves 64 bits, anywhere within the bounds.
  std::optional<Affine> Fit(absl::Span<const int64_t> seen) const;
  // The formula of a constant of this dtype.
  std::optional<Formula> FitConstant(ir::DType dtype, absl::Span<const ir::ConstValue> seen) const;

 private:
  std::vector<int64_t> base_;
  std::vector<int64_t> steps_;  // 0: the variable has one value
  std::vector<int64_t> most_;
  std::vector<std::vector<int64_t>> points_;
};

inline constexpr size_t kMostVariables = 16;

// Places to look, the best first: in the middle of the bounds, where no part is empty or of size 1,
// then at their ends. Empty if a variable has two values, so that there is nothing to gain, or if
// variables are too many or too large.
std::vector<Probes> ProbesFor(absl::Span<const graph::Variable> variables);

// What a formula gives as a constant of this dtype.
ir::ConstValue ConstantAt(const Formula& formula, ir::DType dtype,
                          absl::Span<const int64_t> values);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_PROBES_H_
