// Rules of shapes that rows in several files share; a rule of a single file is next to its row.
#ifndef KILN_COMPILER_OPS_RULES_SHAPE_RULES_H_
#define KILN_COMPILER_OPS_RULES_SHAPE_RULES_H_

#include "compiler/ops/op_def.h"

namespace kiln::ops {

// The attribute "shape".
inline constexpr Rule kAttributeShape = {"attribute", "", R"rule(-> attributes["shape"])rule"};

// NumPy's broadcasting of all operands.
inline constexpr Rule kBroadcastShape = {"broadcast", "", R"rule(-> broadcast(shapes))rule"};

// Uses the attributes "axes" (negative ones count from the end; empty means all) and "keepdims".
inline constexpr Rule kReduceShape = {"reduce", "x", R"rule(
  axes = normalize_axes(attributes["axes"], len(x))
  keepdims = attributes["keepdims"]
  -> tuple(1 if i in axes else x[i] for i in range(len(x)) if keepdims or i not in axes)
)rule"};

// Uses the attribute "padding".
inline constexpr Rule kPadShape = {"pad", "x", R"rule(
  padding = attributes["padding"]
  check len(padding) == 2 * len(x):
    '"padding" has {len(padding)} entries for shape {x}; it needs {2 * len(x)}: before and '
    "after for each dimension"
  check all(amount >= 0 for amount in padding):
    '"padding" {padding} has a negative entry; shrink cuts'
  -> tuple(x[i] + padding[2 * i] + padding[2 * i + 1] for i in range(len(x)))
)rule"};

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_SHAPE_RULES_H_
