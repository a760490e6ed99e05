// Example calls of ops.
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

// Returns the first small shared case (rules/shape_cases.h) that the op accepts: preferably its
// own, otherwise one of an op with the same rule. Operands have the dtype that the client chooses
// when the op leaves it open: float32, or the equivalent that the row requires.
std::optional<OpExample> ExampleOf(const OpDef& op);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_BINDINGS_OPGEN_EXAMPLES_H_
