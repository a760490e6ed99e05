// The shared table of cases for the rules of shapes and dtypes. infer_test.cc checks this
// implementation against it; opgen writes it to tests/golden/shape_cases.json for the clients'
// implementations.
#ifndef KILN_COMPILER_OPS_RULES_SHAPE_CASES_H_
#define KILN_COMPILER_OPS_RULES_SHAPE_CASES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ops/op_def.h"

namespace kiln::ops {

inline constexpr std::nullopt_t kError = std::nullopt;  // a case's result
// An integer attribute: a plain literal would be ambiguous.
inline int64_t I(int64_t value) { return value; }

struct ShapeCase {
  std::string_view op;
  std::vector<ir::Shape> operands;
  Attributes attributes;
  std::optional<ir::Shape> result;  // absent: an error
};
std::vector<ShapeCase> ShapeCases();
// Parts of ShapeCases in other files.
void AddConvolutionCases(std::vector<ShapeCase>& cases);
void AddNeuralCases(std::vector<ShapeCase>& cases);
void AddMatrices(std::vector<ShapeCase>& cases);  // of arrays and matrices

struct DTypeCase {
  std::string_view op;
  std::vector<ir::DType> operands;
  ir::DType declared = ir::DType::kInvalid;
  std::optional<ir::DType> result;  // absent: an error
};
std::vector<DTypeCase> DTypeCases();

// A case for the rows' constraints and for the allowed values of their attributes.
struct ConstraintCase {
  std::string_view op;
  std::vector<ir::Shape> operands;
  std::vector<ir::DType> dtypes;
  Attributes attributes;
  bool holds;
  ir::DType declared = ir::DType::kInvalid;
};
std::vector<ConstraintCase> ConstraintCases();

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_SHAPE_CASES_H_
