// What the families' tables of cases are written with. Internal to tests/numerics.
#ifndef KILN_TESTS_NUMERICS_CASE_BUILDERS_H_
#define KILN_TESTS_NUMERICS_CASE_BUILDERS_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/numerics/cases.h"

namespace kiln::numerics {

using Ints = std::vector<int64_t>;

inline constexpr ir::DType kBool = ir::DType::kBool;
inline constexpr ir::DType kInt32 = ir::DType::kInt32;
inline constexpr ir::DType kUInt32 = ir::DType::kUInt32;

inline Case Make(std::string op, std::vector<OperandSpec> operands,
                 ops::Attributes attributes = {}) {
  Case result;
  result.name = op;
  result.op = std::move(op);
  result.operands = std::move(operands);
  result.attributes = std::move(attributes);
  return result;
}

// The same op under another name, for a second shape or attribute.
inline Case Named(std::string name, Case test_case) {
  test_case.name = std::move(name);
  return test_case;
}

// Not differentiable.
inline Case Flat(Case test_case) {
  test_case.differentiable = false;
  return test_case;
}

inline OperandSpec Ints32(ir::Shape shape, double low, double high) {
  return {std::move(shape), low, high, kInt32};
}
inline OperandSpec Bools(ir::Shape shape) { return {std::move(shape), 0, 2, kBool}; }

// The families' tables, each in a file of its own.
void AddNeural(std::vector<Case>& cases);        // cases_neural.cc
void AddNeuralLosses(std::vector<Case>& cases);  // cases_losses.cc
void AddFunctions(std::vector<Case>& cases);     // cases_functions.cc
void AddArrays(std::vector<Case>& cases);        // cases_arrays.cc

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_CASE_BUILDERS_H_
