// Sorts the positions of a scatter by destination, in a way suited to machines with thousands of
// threads: no step waits for many others. Internal to partition/scatter.
#ifndef KILN_COMPILER_PARTITION_SCATTER_SORT_POSITIONS_H_
#define KILN_COMPILER_PARTITION_SCATTER_SORT_POSITIONS_H_

#include <cstdint>

#include "compiler/ir/node.h"
#include "compiler/ops/builder.h"

namespace kiln::partition {

// Bound on the positions, and on the destinations, of one line: each takes half of a key.
inline constexpr int64_t kSortedMax = int64_t{1} << 31;

// `index`, [L, P], has destinations below `destinations`. The result, [L, S] with S >= P, is
// stored: keys in ascending order, with the destination in the upper half and the position in the
// lower. A destination out of range, and padding up to S, count as `destinations`.
//
// Runs of 512 are sorted by counting the keys before each key, in two kernels. Then pairs of runs
// are merged, with one kernel per doubling: every element finds by binary search how many of the
// elements before it come from the first run. ("Merge path": Odeh, Green, Mwassi, Shmueli and Birk,
// 2012.)
const ir::Node* SortPositions(ops::Builder& b, const ir::Node* index, int64_t destinations);

const ir::Node* DestinationOf(ops::Builder& b, const ir::Node* key);
const ir::Node* PositionOf(ops::Builder& b, const ir::Node* key);

// Returns [L, N + 1], stored: the number of keys with a destination below each one, and below N.
const ir::Node* FindBegins(ops::Builder& b, const ir::Node* keys, int64_t destinations);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SCATTER_SORT_POSITIONS_H_
