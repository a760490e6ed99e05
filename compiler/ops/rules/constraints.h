// Constraints that rows in several files share; a constraint of a single file is next to its row.
#ifndef KILN_COMPILER_OPS_RULES_CONSTRAINTS_H_
#define KILN_COMPILER_OPS_RULES_CONSTRAINTS_H_

#include "compiler/ops/op_def.h"

namespace kiln::ops {

// The attribute "axis" is an axis of operand 0.
inline constexpr Rule kAxisRule = {"axis", "x",
                                   R"rule(normalize_axis(attributes["axis"], len(x)))rule"};

// As kAxisRule, for the result.
inline constexpr Rule kAxisOfResultRule = {
    "axis_of_result", "", R"rule(normalize_axis(attributes["axis"], len(shape)))rule"};

// The operand "key" has shape (2,).
inline constexpr Rule kKeyRule = {"key", "", R"rule(
  key = operand_named(op, shapes, "key")
  check key == (2,): "a key of shape {key}; it must be uint32 of shape (2,)"
)rule"};

// Operand 2, values, has the dtype of operand 0, x.
inline constexpr Rule kEqualDTypesRule = {"equal_dtypes", "", R"rule(
  check len(dtypes) < 3 or dtypes[2] == dtypes[0]:
    "values of {dtypes[2].name} for x of {dtypes[0].name}; both must have one dtype, cast one of "
    "them"
)rule"};

// Operand 0 is not bool, unless the attribute "mode" is "set".
inline constexpr Rule kNumbersToCombineRule = {"numbers_to_combine", "", R"rule(
  mode = attributes["mode"]
  check mode == "set" or dtypes[0].name != "bool":
    'mode "{mode}" of bools; it must be set, or x and values numbers'
)rule"};

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_CONSTRAINTS_H_
