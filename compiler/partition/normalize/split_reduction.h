// Splits a large reduction to few elements into two, so that the first has enough results to run in
// parallel. On machines with many units contractions are split, too: partial sums are stored, and a
// second kernel adds them, in the same order each time.
#ifndef KILN_COMPILER_PARTITION_NORMALIZE_SPLIT_REDUCTION_H_
#define KILN_COMPILER_PARTITION_NORMALIZE_SPLIT_REDUCTION_H_

#include "compiler/ir/node.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// Returns `node` itself if it is not a reduction, is small, has enough results for `limits`, or has
// no axis to split. The second reduction is over the leading reduced axis or a part of it; the
// first over the contiguous rest. If an axis is not cut evenly, the last part of a sum is padded
// with zeros.
const ir::Node* SplitReduction(ir::Context& context, const ir::Node* node,
                               const drivers::Limits& limits);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_NORMALIZE_SPLIT_REDUCTION_H_
