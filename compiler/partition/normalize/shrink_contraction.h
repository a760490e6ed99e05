// A part of a contraction's result is a smaller contraction.
#ifndef KILN_COMPILER_PARTITION_NORMALIZE_SHRINK_CONTRACTION_H_
#define KILN_COMPILER_PARTITION_NORMALIZE_SHRINK_CONTRACTION_H_

#include <functional>

#include "compiler/ir/node.h"

namespace kiln::partition {

// For a shrink of a contraction, possibly with reshapes that only add or remove dimensions of size
// 1, returns the contraction that computes only that part. The gradient of a padded convolution is
// such a part, since the gradient of its border is not used: for example 16 of 6 x 6 positions.
// Returns null for everything else, and if the whole is used too (`single_use` is false for it).
const ir::Node* ShrinkContraction(ir::Context& context, const ir::Node* shrink,
                                  const std::function<bool(const ir::Node*)>& single_use);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_NORMALIZE_SHRINK_CONTRACTION_H_
