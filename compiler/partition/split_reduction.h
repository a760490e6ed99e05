// A large reduction to few elements as two, so that the first has enough results to be computed in
// parallel. On machines with many units contractions are cut, too: their sums over a part of what
// they run over are stored, and a second kernel adds those, in the same order each time.
#ifndef KILN_COMPILER_PARTITION_SPLIT_REDUCTION_H_
#define KILN_COMPILER_PARTITION_SPLIT_REDUCTION_H_

#include "compiler/ir/node.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// `node` itself where it is no reduction, is small, has enough results for `limits`, or has no axis
// to split. The second reduction is over the leading reduced axis or a part of it; the first over
// what is contiguous. Where an axis is not cut evenly, the last part of a sum ends in zeros.
const ir::Node* SplitReduction(ir::Context& context, const ir::Node* node,
                               const drivers::Limits& limits);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SPLIT_REDUCTION_H_
