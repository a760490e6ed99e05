// Merges a reduction of a movement of a reduction to one reduction.
#ifndef KILN_COMPILER_PARTITION_NORMALIZE_MERGE_REDUCTIONS_H_
#define KILN_COMPILER_PARTITION_NORMALIZE_MERGE_REDUCTIONS_H_

#include <functional>

#include "compiler/ir/node.h"

namespace kiln::partition {

// Returns `node` itself if it is not a reduction, if an inner value is used elsewhere (`single_use`
// is false for it), or if the movement repeats elements, which would repeat the inner work. Strides
// in an unwindow count as repetition, since most of the points that they visit are empty.
const ir::Node* MergeReduction(ir::Context& context, const ir::Node* node,
                               const std::function<bool(const ir::Node*)>& single_use);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_NORMALIZE_MERGE_REDUCTIONS_H_
