// Calls to show ops by.
#ifndef KILN_COMPILER_OPS_BINDINGS_OPGEN_EXAMPLES_H_
#define KILN_COMPILER_OPS_BINDINGS_OPGEN_EXAMPLES_H_

#include <optional>
#include <vector>

#include "compiler/ops/op_def.h"

namespace kiln::ops {

struct OpExample {
  std::vector<ir::Shape> operands;
  Attributes attributes;
};

// The first of the shared cases (rules/shape_cases.h) that the op takes and that is small: of its
// own, else of ops by the same rule. Operands are of the dtype that the client gives them when the
// op leaves it open: float32, or the like of what the row demands.
std::optional<OpExample> ExampleOf(const OpDef& op);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_BINDINGS_OPGEN_EXAMPLES_H_
