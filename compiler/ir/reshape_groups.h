// Maps the dimensions of a reshape's operand to those of its result.
#ifndef KILN_COMPILER_IR_RESHAPE_GROUPS_H_
#define KILN_COMPILER_IR_RESHAPE_GROUPS_H_

#include <cstddef>
#include <vector>

#include "compiler/ir/node.h"

namespace kiln::ir {

// Dimensions [from, from_end) of one shape hold the same elements as [to, to_end) of the other.
struct ReshapeGroup {
  size_t from = 0, from_end = 0, to = 0, to_end = 0;
};

// Returns the smallest groups with equal products. Requires: both shapes have the same number of
// elements, which is not 0.
std::vector<ReshapeGroup> ReshapeGroups(const Shape& from, const Shape& to);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_RESHAPE_GROUPS_H_
