// One graph of primitives for all values of its variables: every size, every integer of a movement
// and every constant is a formula of the variables.
#ifndef KILN_COMPILER_VARIABLES_GENERAL_GRAPH_H_
#define KILN_COMPILER_VARIABLES_GENERAL_GRAPH_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/variable.h"
#include "compiler/ir/node.h"
#include "compiler/variables/affine.h"
#include "compiler/variables/derived.h"

namespace kiln::variables {

// The value of a constant that depends on the variables, rounded to the node's dtype.
struct Formula {
  enum class Kind : uint8_t {
    kAffine,      // the number itself: a length
    kReciprocal,  // 1 / number: the factor of a mean
  };
  Kind kind = Kind::kAffine;
  Affine number;
};

struct GeneralNode {
  ir::Op op = ir::Op::kConst;
  ir::DType dtype = ir::DType::kInvalid;
  std::vector<int> operands;  // indices of nodes before this one
  std::vector<Affine> shape;
  // The node's attribute if it is the same for all values; otherwise `varying` has the Formula (of
  // a constant) or the integers (of an IntsAttr).
  ir::Attribute attribute;
  std::variant<std::monostate, Formula, std::vector<Affine>> varying;
};

struct GeneralGraph {
  std::vector<graph::Variable> variables;
  std::vector<Derived> derived;
  std::vector<GeneralNode> nodes;  // operands before their users
  struct Input {
    ir::DType dtype = ir::DType::kInvalid;
    std::vector<Affine> shape;
  };
  std::vector<Input> inputs;
  std::vector<int> outputs;
  struct Update {
    int input = 0;
    int value = 0;
  };
  std::vector<Update> updates;
  graph::MatmulPrecision float32_matmul_precision = graph::MatmulPrecision::kHighest;
};

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_GENERAL_GRAPH_H_
