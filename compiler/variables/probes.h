// The values at which the graph is built, and the formulas that fit the results. Internal to
// generalize.cc.
#ifndef KILN_COMPILER_VARIABLES_PROBES_H_
#define KILN_COMPILER_VARIABLES_PROBES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

// A base point, some steps from it along every variable, and a step along several variables
// together: enough to distinguish affine functions from others.
class Probes {
 public:
  struct Reach {
    int64_t along = 2;  // the number of steps along each variable, at least 2
    int64_t joint = 1;  // the length of the step along all variables together
    bool derives = false;
  };
  // `step` is 1 or -1 along each variable with more than one value, else 0; 1 if it derives.
  // Requires: the points are within the bounds, whose upper ends are `values_max`.
  Probes(std::vector<int64_t> base, std::vector<int64_t> steps, std::vector<int64_t> values_max,
         Reach reach);

  const std::vector<std::vector<int64_t>>& points() const { return points_; }
  // Returns whether Fit also finds functions of derived variables.
  bool derives() const { return derives_; }

  // Returns the affine function with these values at the points, if there is one and it is so small
  // that no sum with it overflows 64 bits, anywhere within the bounds. Derived variables that it
  // needs and that are not yet in the list are added.
  std::optional<Affine> Fit(absl::Span<const int64_t> seen, std::vector<Derived>* derived) const;
  // Returns the formula of a constant of this dtype.
  std::optional<Formula> FitConstant(ir::DType dtype, absl::Span<const ir::ConstValue> seen,
                                     std::vector<Derived>* derived) const;

 private:
  class Fitting;
  struct Pair {
    size_t first, second;  // variables
    size_t point;          // where both are one step from the base
  };

  std::vector<int64_t> base_;
  std::vector<int64_t> steps_;  // 0: the variable has only one value
  std::vector<int64_t> values_max_;
  const size_t along_;
  const bool derives_;
  std::vector<std::vector<int64_t>> points_;
  std::vector<size_t> first_steps_;  // by variable, the point one step along it; the others follow
  std::vector<Pair> pairs_;          // if it derives
};

inline constexpr size_t kVariablesMax = 16;

// Returns probes in order of preference: first in the middle of the bounds, where no part is empty
// or of size 1, there also some that derive, then at the ends. Empty if a variable has only two
// values, since then nothing is gained, or if there are too many variables or they are too large.
std::vector<Probes> ProbesFor(absl::Span<const graph::Variable> variables);

// Returns the formula's value as a constant of this dtype. `values` are followed by those of
// derived variables.
ir::ConstValue ConstantAt(const Formula& formula, ir::DType dtype,
                          absl::Span<const int64_t> values);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_PROBES_H_
