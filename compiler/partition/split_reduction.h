// A large reduction to few elements as two, so that the first has enough results to be computed in
// parallel.
#ifndef KILN_COMPILER_PARTITION_SPLIT_REDUCTION_H_
#define KILN_COMPILER_PARTITION_SPLIT_REDUCTION_H_

#include "compiler/ir/node.h"

namespace kiln::partition {

// `node` itself where it is no reduction, is small, has enough results, or has no axis to split
// evenly. The second reduction is over the leading reduced axis or a part of it; the first over
// what is contiguous.
const ir::Node* SplitReduction(ir::Context& context, const ir::Node* node);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SPLIT_REDUCTION_H_
