// A part of a contraction's result is a smaller contraction.
#ifndef KILN_COMPILER_PARTITION_SHRINK_CONTRACTION_H_
#define KILN_COMPILER_PARTITION_SHRINK_CONTRACTION_H_

#include <functional>

#include "compiler/ir/node.h"

namespace kiln::partition {

// For a shrink of a contraction, perhaps reshaped by dimensions of size 1 alone: the contraction of
// what the part needs. The gradient of a padded convolution is such a part, since nobody reads its
// border: of 6 x 6 places 16 are asked for. Null for all else, and where the whole is used too
// (`single_use` is false for it).
const ir::Node* ShrinkContraction(ir::Context& context, const ir::Node* shrink,
                                  const std::function<bool(const ir::Node*)>& single_use);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SHRINK_CONTRACTION_H_
