// Stores the end of the elementwise chain after a reduction instead of the reduction's result. That
// takes no more memory, and no reader recomputes the chain.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_EPILOGUE_H_
#define KILN_COMPILER_PARTITION_CLUSTER_EPILOGUE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/node.h"

namespace kiln::partition {

// Returns the ends of the chains after the reductions in `order` (operands before users). `users`
// has the users of all nodes. A chain ends at a node in `required`. `matrix_units`: whether the
// target has them (LeftToReaders).
absl::flat_hash_set<const ir::Node*> FindEpilogues(
    const std::vector<const ir::Node*>& order,
    const absl::flat_hash_map<const ir::Node*, std::vector<const ir::Node*>>& users,
    const absl::flat_hash_set<const ir::Node*>& required, bool matrix_units);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_EPILOGUE_H_
