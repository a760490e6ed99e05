// Scatters to many destinations: sorts the positions by destination, so that each destination has a
// segment. Internal to partition/scatter.
#ifndef KILN_COMPILER_PARTITION_SCATTER_COMBINE_SEGMENTS_H_
#define KILN_COMPILER_PARTITION_SCATTER_COMBINE_SEGMENTS_H_

#include "compiler/ir/node.h"
#include "compiler/ops/builder.h"
#include "compiler/partition/scatter/lines.h"

namespace kiln::partition {

// Returns the result, [L, N, C]; see spread_scatter.h. Requires: fewer positions and destinations
// than kSortedMax.
const ir::Node* CombineSegments(ops::Builder& b, const ScatterLines& scatter);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SCATTER_COMBINE_SEGMENTS_H_
