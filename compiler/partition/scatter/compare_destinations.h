// Scatters to few destinations: each destination compares all positions. Internal to
// partition/scatter.
#ifndef KILN_COMPILER_PARTITION_SCATTER_COMPARE_DESTINATIONS_H_
#define KILN_COMPILER_PARTITION_SCATTER_COMPARE_DESTINATIONS_H_

#include "compiler/ir/node.h"
#include "compiler/ops/builder.h"
#include "compiler/partition/scatter/lines.h"

namespace kiln::partition {

// Returns the result, [L, N, C]. A kernel reduces 512 positions for each of its elements, the next
// kernel 512 of these, and so on.
const ir::Node* CompareDestinations(ops::Builder& b, const ScatterLines& scatter);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SCATTER_COMPARE_DESTINATIONS_H_
