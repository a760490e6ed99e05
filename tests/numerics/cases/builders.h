// Helpers for the tables of cases. Internal to numerics/cases.
#ifndef KILN_TESTS_NUMERICS_CASES_BUILDERS_H_
#define KILN_TESTS_NUMERICS_CASES_BUILDERS_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/numerics/cases/cases.h"

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

// Gives the case another name, for a second shape or attribute of the same op.
inline Case Named(std::string name, Case test_case) {
  test_case.name = std::move(name);
  return test_case;
}

// Marks the case as not differentiable.
inline Case Flat(Case test_case) {
  test_case.differentiable = false;
  return test_case;
}

inline OperandSpec Ints32(ir::Shape shape, double low, double high) {
  return {std::move(shape), low, high, kInt32};
}
inline OperandSpec Bools(ir::Shape shape) { return {std::move(shape), 0, 2, kBool}; }

// The tables of the op families, each in its own file.
void AddNeural(std::vector<Case>& cases);        // neural.cc
void AddNeuralLosses(std::vector<Case>& cases);  // losses.cc
void AddFunctions(std::vector<Case>& cases);     // functions.cc
void AddArrays(std::vector<Case>& cases);        // arrays.cc

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_CASES_BUILDERS_H_
