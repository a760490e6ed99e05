// Which values are wanted padded by those that use them.
#ifndef KILN_COMPILER_SHARD_PADDING_WISHES_H_
#define KILN_COMPILER_SHARD_PADDING_WISHES_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/graph.h"

namespace kiln::shard {

// By node the sizes that it would best have; what is missing is wanted as it is. From outputs,
// updates and hints back to the sums that they are made of, whose partial results are then
// scattered in equal parts, and to the products that are summed up; not behind those. `order` has
// operands before users.
absl::flat_hash_map<const ir::Node*, ir::Shape> PaddingWishes(
    const graph::Graph& graph, const std::vector<const ir::Node*>& order);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PADDING_WISHES_H_
