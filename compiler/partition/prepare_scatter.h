// Gives scatters the form that fusion and lowering know. Part of normalize.h's implementation.
#ifndef KILN_COMPILER_PARTITION_PREPARE_SCATTER_H_
#define KILN_COMPILER_PARTITION_PREPARE_SCATTER_H_

#include <cstdint>

#include "compiler/ir/node.h"

namespace kiln::partition {

// What the scatter becomes, over the same operands:
//  * with nothing to scatter, x;
//  * with one value for each line along the axis, where(index == i, combined, x), which fuses;
//  * many sums into few elements, as a histogram's, become those of kParts pieces, which run in
//  parallel, and a sum over the pieces;
//  * else a scatter that writes over a kMutable of x, or over x itself where that is a scatter
//  already and nobody else uses it (`own`).
// `copies` numbers the kMutables.
const ir::Node* PrepareScatter(ir::Context& context, const ir::Node* scatter, bool own,
                               int64_t* copies);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_PREPARE_SCATTER_H_
