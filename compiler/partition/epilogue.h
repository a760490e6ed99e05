// What of a reduction is stored. A value that only leads up to another need not be stored before
// it: so it is the end of the elementwise chain that follows the reduction, which costs no more
// memory, and nobody computes the chain twice.
#ifndef KILN_COMPILER_PARTITION_EPILOGUE_H_
#define KILN_COMPILER_PARTITION_EPILOGUE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/node.h"

namespace kiln::partition {

// The ends of the chains after the reductions among `order` (operands before users). `users`: of
// all nodes. Chains end at what is `required`.
absl::flat_hash_set<const ir::Node*> FindEpilogues(
    const std::vector<const ir::Node*>& order,
    const absl::flat_hash_map<const ir::Node*, std::vector<const ir::Node*>>& users,
    const absl::flat_hash_set<const ir::Node*>& required);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_EPILOGUE_H_
