// One table of small applications of ops, which every test of numerics runs: the interpreter
// against golden values, gradients against finite differences, compiled programs against the
// interpreter.
#ifndef KILN_TESTS_NUMERICS_CASES_CASES_H_
#define KILN_TESTS_NUMERICS_CASES_CASES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/ops/op_def.h"

namespace kiln::numerics {

struct OperandSpec {
  ir::Shape shape;
  // Values are spread evenly over [low, high); whole numbers for integers and bool.
  double low = -2;
  double high = 2;
  // kInvalid: the float dtype in which the case is run.
  ir::DType dtype = ir::DType::kInvalid;
};

struct Case {
  std::string name;  // unique; by default the op's
  std::string op;
  std::vector<OperandSpec> operands;
  ops::Attributes attributes;
  ir::DType declared = ir::DType::kInvalid;
  // True if the result has the operands' float dtype and has a derivative at (nearly) all of these
  // values.
  bool differentiable = true;
};

const std::vector<Case>& Cases();

// Returns the value of a case's operand number `position`: low + (high - low) * fraction((i + 1) *
// golden ratio + position / e).
ops::HostTensor OperandValue(const OperandSpec& spec, ir::DType float_dtype, int position);
std::vector<ops::HostTensor> OperandValues(const Case& test_case, ir::DType float_dtype);

// Returns a graph that applies the op to one input for each operand; it has one output.
absl::StatusOr<graph::Graph> MakeGraph(const Case& test_case, ir::DType float_dtype);

// As MakeGraph, with an additional input, `upstream` (of the result's shape and dtype), and, after
// the result, the gradients with respect to every float operand. If `differentiate`, gradients have
// been replaced by graphs.
absl::StatusOr<graph::Graph> MakeGradientGraph(const Case& test_case, ir::DType float_dtype,
                                               bool differentiate);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_CASES_CASES_H_
