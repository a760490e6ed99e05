#include "tests/numerics/cases/split_cases.h"

#include "tests/numerics/cases/builders.h"

namespace kiln::numerics {
namespace {

std::vector<Case> MakeSplitCases() {
  const ops::Attributes rows = {{"axes", Ints{0}}};
  std::vector<Case> cases = {
      // Short sides and a long sum, which the prime size 1,031 splits unevenly.
      Named("matmul_even", Make("matmul", {{{32, 1024}, -1, 1}, {{1024, 32}, -1, 1}})),
      Named("matmul_ragged", Make("matmul", {{{33, 1031}, -1, 1}, {{1031, 32}, -1, 1}})),
      // The gradients of both factors sum over the rows of all matrices.
      Named("linear_rows",
            Make("linear", {{{3, 347, 32}, -1, 1}, {{33, 32}, -1, 1}, {{33}, -1, 1}})),
      // The weight's gradient sums over images and positions.
      Named("conv2d_weight", Make("conv2d", {{{6, 8, 15, 16}, -1, 1}, {{16, 8, 3, 3}, -1, 1}})),
      // Sums of all elements: evenly divisible, of prime size, and over axes that are each too
      // short.
      Named("sum_all", Make("sum", {{{256, 160}, 0, 1}})),
      Named("sum_prime", Make("sum", {{{40009}, 0, 1}})),
      Named("sum_short_axes", Make("sum", {{{3, 5, 2731}, 0, 1}})),
      Named("sum_integers", Flat(Make("sum", {Ints32({40009}, -9, 9)}))),
      // Across memory: a thread for each column.
      Named("sum_columns", Make("sum", {{{640, 64}, 0, 1}}, rows)),
      Named("sum_columns_ragged", Make("sum", {{{641, 65}, 0, 1}}, rows)),
      Named("max_columns", Flat(Make("max", {{{640, 64}}}, rows))),
      Named("max_all", Flat(Make("max", {{{40000}}}))),
      Named("max_prime_rows", Flat(Make("max", {{{8, 5003}}}))),
      Named("prod_all", Flat(Make("prod", {{{200, 200}, 0.99, 1.01}}))),
      // Rows that a few blocks share: the ops after the sums become separate kernels.
      Named("softmax_long", Make("softmax", {{{2, 20011}, -1, 1}}, {{"axis", int64_t{-1}}})),
      Named("var_long", Make("var", {{{2, 20000}, -1, 1}}, {{"axes", Ints{1}}})),
  };
  return cases;
}

}  // namespace

const std::vector<Case>& SplitCases() {
  static const auto& cases = *new std::vector<Case>(MakeSplitCases());
  return cases;
}

}  // namespace kiln::numerics
