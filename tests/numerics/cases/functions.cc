// Elementwise functions that are not primitives, and reductions composed of them.
#include <limits>

#include "tests/numerics/cases/builders.h"

namespace kiln::numerics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void AddElementwiseFunctions(std::vector<Case>& cases) {
  for (const char* op : {"expm1", "sinh", "cosh", "asinh", "atan", "erfc"}) {
    cases.push_back(Make(op, {{{3, 4}}}));
    cases.push_back(Named(std::string(op) + "_far", Make(op, {{{9}, -9, 9}})));
    cases.push_back(Named(std::string(op) + "_near_zero", Make(op, {{{5}, -1e-3, 1e-3}})));
  }
  for (const char* op : {"asin", "acos", "atanh", "erfinv"}) {
    cases.push_back(Make(op, {{{3, 4}, -0.95, 0.95}}));
  }
  cases.push_back(Make("log1p", {{{3, 4}, -0.9, 3}}));
  cases.push_back(Named("log1p_near_zero", Make("log1p", {{{5}, -1e-3, 1e-3}})));
  cases.push_back(Make("log10", {{{3, 4}, 0.25, 40}}));
  cases.push_back(Make("acosh", {{{3, 4}, 1.1, 9}}));
  cases.push_back(Make("cbrt", {{{3, 4}, -9, 9}}));
  cases.push_back(Make("lgamma", {{{3, 4}, 0.2, 9}}));
  cases.push_back(Named("lgamma_below_zero", Make("lgamma", {{{7}, -3.9, 0}})));
  cases.push_back(Make("digamma", {{{3, 4}, 0.2, 9}}));
  cases.push_back(Named("digamma_below_zero", Make("digamma", {{{7}, -3.9, 0}})));
  for (const char* op : {"logaddexp", "logaddexp2", "atan2", "hypot"}) {
    cases.push_back(Make(op, {{{3, 1, 4}}, {{2, 4}}}));
  }
  cases.push_back(Make("with_derivative", {{{3, 4}}, {{4}}, {{3, 1}}}));
  cases.back().differentiable = false;  // its gradient is an operand
}

void AddNumbers(std::vector<Case>& cases) {
  cases.push_back(Flat(Make("signbit", {{{5}}})));
  cases.push_back(Make("copysign", {{{3, 4}}, {{4}}}));
  cases.push_back(Flat(Make("nextafter", {{{3, 4}}, {{4}}})));
  cases.push_back(Make("fmod", {{{3, 4}, -5, 5}, {{4}, 0.6, 2}}));
  cases.push_back(
      Named("fmod_int32", Flat(Make("fmod", {Ints32({4, 5}, -20, 20), Ints32({5}, 1, 9)}))));
  cases.push_back(Flat(Make("isclose", {{{3, 4}}, {{4}}}, {{"atol", 0.5}})));
  cases.push_back(Make("nan_to_num", {{{5}}}));
  cases.push_back(Flat(Make("logical_xor", {Ints32({3, 4}, 0, 2), Ints32({4}, 0, 2)})));
  for (const char* op : {"trunc", "floor", "ceil", "round"}) {
    cases.push_back(Named(std::string(op) + "_int32", Flat(Make(op, {Ints32({5}, -9, 9)}))));
  }
}

void AddStatistics(std::vector<Case>& cases) {
  cases.push_back(Make("std", {{{3, 5}}}, {{"axes", Ints{1}}}));
  cases.push_back(Flat(Make("argmin", {{{3, 5}}}, {{"axes", Ints{1}}})));
  cases.push_back(
      Named("argmin_int32", Flat(Make("argmin", {Ints32({3, 4}, -3, 3)}, {{"axes", Ints{1}}}))));
  cases.push_back(Flat(Make("count_nonzero", {Ints32({3, 4}, -1, 2)}, {{"axes", Ints{1}}})));
  cases.push_back(Make("vector_norm", {{{3, 5}}}, {{"axes", Ints{1}}}));
  for (const auto& [name, order] : {std::pair{"one", 1.0},
                                    {"three", 3.0},
                                    {"inf", kInfinity},
                                    {"minus_inf", -kInfinity},
                                    {"half", 0.5}}) {
    cases.push_back(Named(std::string("vector_norm_") + name,
                          Make("vector_norm", {{{3, 5}}}, {{"axes", Ints{1}}, {"ord", order}})));
  }
}

}  // namespace

void AddFunctions(std::vector<Case>& cases) {
  AddElementwiseFunctions(cases);
  AddNumbers(cases);
  AddStatistics(cases);
}

}  // namespace kiln::numerics
