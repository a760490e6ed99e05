// Finds the values that their users want padded.
#ifndef KILN_COMPILER_SHARD_PADDING_WISHES_H_
#define KILN_COMPILER_SHARD_PADDING_WISHES_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/graph.h"

namespace kiln::shard {

// Returns, by node, the sizes wanted for it; nodes that are missing are wanted unpadded. Wishes go
// from outputs, updates and hints back to the sums that they depend on, whose partial results are
// then scattered in equal parts, and to the products that are summed; they go no further. `order`
// has operands before users.
absl::flat_hash_map<const ir::Node*, ir::Shape> PaddingWishes(
    const graph::Graph& graph, const std::vector<const ir::Node*>& order);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PADDING_WISHES_H_
