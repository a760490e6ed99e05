// Ops on whole arrays and matrices: accumulation, order, einsum, factorizations.
#include "tests/numerics/cases/builders.h"

namespace kiln::numerics {
namespace {

ops::Attributes Along(int64_t axis) { return {{"axis", axis}}; }

void AddCumulative(std::vector<Case>& cases) {
  for (const char* op : {"cumulative_sum", "cumulative_prod", "cumulative_max", "cumulative_min",
                         "cumulative_logsumexp"}) {
    cases.push_back(Make(op, {{{3, 5}}}, Along(1)));
    cases.push_back(Named(std::string(op) + "_first", Make(op, {{{5, 3}}}, Along(0))));
    // Three levels of blocks, the last one ragged.
    cases.push_back(Named(std::string(op) + "_long", Make(op, {{{1100}, -1.02, 1.02}}, Along(0))));
  }
  cases.push_back(Named("cumulative_sum_int32",
                        Flat(Make("cumulative_sum", {Ints32({2, 70}, -9, 9)}, Along(1)))));
  cases.push_back(Named("cumulative_max_int32",
                        Flat(Make("cumulative_max", {Ints32({2, 70}, -9, 9)}, Along(1)))));
}

void AddOrder(std::vector<Case>& cases) {
  cases.push_back(Make("sort", {{{3, 7}}}));
  cases.push_back(Named("sort_first", Make("sort", {{{9, 2}}}, Along(0))));
  cases.push_back(Named("sort_descending", Make("sort", {{{33}}}, {{"descending", true}})));
  cases.push_back(Named("sort_int32", Flat(Make("sort", {Ints32({2, 20}, -5, 5)}))));
  cases.push_back(Flat(Make("argsort", {{{3, 7}}})));
  cases.push_back(Named("argsort_ties", Flat(Make("argsort", {Ints32({2, 40}, -3, 3)}))));
  cases.push_back(Named("argsort_ties_descending",
                        Flat(Make("argsort", {Ints32({2, 40}, -3, 3)}, {{"descending", true}}))));
  const ops::Attributes three = {{"k", int64_t{3}}};
  cases.push_back(Make("topk", {{{2, 50}}}, three));
  cases.push_back(Named(
      "topk_smallest",
      Make("topk", {{{20, 2}}}, {{"k", int64_t{2}}, {"axis", int64_t{0}}, {"largest", false}})));
  cases.push_back(Flat(Make("topk_indices", {{{2, 50}}}, three)));
  // The second of the two values is the smaller one, so the sequence is descending.
  cases.push_back(Flat(Make("searchsorted", {{{3, 4}, -3, 3}, {{2}, 2, -2}})));
  cases.push_back(Named(
      "searchsorted_right",
      Flat(Make("searchsorted", {Ints32({3, 4}, -3, 3), Ints32({2}, 2, -2)}, {{"right", true}}))));
}

ops::Attributes Equation(const char* text) { return {{"equation", std::string(text)}}; }

void AddEinsum(std::vector<Case>& cases) {
  cases.push_back(Make("einsum", {{{3, 5}}, {{5, 4}}}, Equation("ij,jk->ik")));
  cases.push_back(Named("einsum_batched",
                        Make("einsum", {{{2, 3, 5}}, {{2, 4, 5}}}, Equation("bij,bkj->bki"))));
  cases.push_back(Named("einsum_trace", Make("einsum", {{{4, 4}}}, Equation("ii"))));
  cases.push_back(Named("einsum_diagonal", Make("einsum", {{{3, 2, 3}}}, Equation("iji->ji"))));
  cases.push_back(Named("einsum_ellipsis",
                        Make("einsum", {{{2, 1, 3}}, {{4, 3, 2}}}, Equation("...j,...jk->...k"))));
  cases.push_back(Named("einsum_outer", Make("einsum", {{{3}}, {{4}}}, Equation("i,j"))));
  cases.push_back(Named("einsum_chain", Make("einsum", {{{2, 3}}, {{3, 4}}, {{4, 5}}, {{5}}},
                                             Equation("ij,jk,kl,l->i"))));
  cases.push_back(
      Named("einsum_summed", Make("einsum", {{{2, 3}}, {{3, 4}}}, Equation("ij,jk->k"))));
}

void AddMatrices(std::vector<Case>& cases) {
  cases.push_back(Make("diagonal", {{{3, 5}}}));
  cases.push_back(
      Named("diagonal_offset",
            Make("diagonal", {{{4, 2, 3}}},
                 {{"offset", int64_t{-1}}, {"axis1", int64_t{0}}, {"axis2", int64_t{2}}})));
  cases.push_back(Make("diag_embed", {{{2, 3}}}));
  cases.push_back(
      Named("diag_embed_offset", Make("diag_embed", {{{3}}}, {{"offset", int64_t{-2}}})));
  cases.push_back(Make("cross", {{{4, 3}}, {{4, 3}}}));
  cases.push_back(Named("cross_first", Make("cross", {{{3, 2}}, {{3, 2}}}, Along(0))));
  cases.push_back(Make("roll", {{{3, 4}}}, {{"shifts", Ints{1, -2}}, {"axes", Ints{0, 1}}}));
}

void AddFactorizations(std::vector<Case>& cases) {
  // These values are positive definite.
  cases.push_back(Make("cholesky", {{{2, 2}, 4, -0.6}}));
  cases.push_back(Make("triangular_solve", {{{2, 3, 3}, 1, 2}, {{3, 2}}}));
  cases.push_back(Named("triangular_solve_upper",
                        Make("triangular_solve", {{{4, 4}, 1, 2}, {{4}}}, {{"upper", true}})));
  cases.push_back(
      Named("triangular_solve_unit",
            Make("triangular_solve", {{{4, 4}, -1, 1}, {{4, 1}}}, {{"unit_diagonal", true}})));
  // With more than three columns these values give nearly singular matrices.
  cases.push_back(Make("solve", {{{3, 3}}, {{3, 2}}}));
  cases.push_back(Named("solve_batched", Make("solve", {{{2, 1, 3, 3}}, {{3, 3, 2}}})));
  cases.push_back(Named("solve_vector", Make("solve", {{{3, 3}}, {{3}}})));
  cases.push_back(Make("inv", {{{2, 3, 3}}}));
  for (const char* op : {"det", "slogdet_logabs"}) cases.push_back(Make(op, {{{2, 3, 3}}}));
  cases.push_back(Flat(Make("slogdet_sign", {{{2, 3, 3}}})));
  for (const char* part : {"q", "r"}) {
    const ops::Attributes reduced = {{"part", std::string(part)}};
    const ops::Attributes complete = {{"part", std::string(part)}, {"complete", true}};
    cases.push_back(Named(std::string("qr_tall_") + part, Make("qr", {{{5, 3}}}, reduced)));
    cases.push_back(Named(std::string("qr_wide_") + part, Make("qr", {{{2, 3, 4}}}, reduced)));
    cases.push_back(Named(std::string("qr_complete_") + part, Make("qr", {{{4, 2}}}, complete)));
  }
}

}  // namespace

void AddArrays(std::vector<Case>& cases) {
  AddCumulative(cases);
  AddOrder(cases);
  AddEinsum(cases);
  AddMatrices(cases);
  AddFactorizations(cases);
}

}  // namespace kiln::numerics
