// Positions of a scatter in the order of their destinations, by means that a machine with thousands
// of threads has: no step waits for many others. Internal to compiler/partition.
#ifndef KILN_COMPILER_PARTITION_SORT_POSITIONS_H_
#define KILN_COMPILER_PARTITION_SORT_POSITIONS_H_

#include <cstdint>

#include "compiler/ir/node.h"
#include "compiler/ops/builder.h"

namespace kiln::partition {

// Of one line, at most: both have half of a key.
inline constexpr int64_t kSortedMax = int64_t{1} << 31;

// `index`, [L, P], names destinations below `destinations`. The result, [L, S] with S >= P, is
// stored: keys in ascending order, the destination in their upper half and the position in the
// lower. A destination that is out of range counts as `destinations`; so does what fills up S.
//
// Runs of 512 are sorted by counting how many keys come before each one, which takes two kernels.
// Pairs of runs are then merged, in a kernel for each time that they double: every element finds by
// halving how many of the elements before it come from the first run. ("Merge path": Odeh, Green,
// Mwassi, Shmueli and Birk, 2012.)
const ir::Node* SortPositions(ops::Builder& b, const ir::Node* index, int64_t destinations);

const ir::Node* DestinationOf(ops::Builder& b, const ir::Node* key);
const ir::Node* PositionOf(ops::Builder& b, const ir::Node* key);

// [L, N + 1], stored: how many keys have a destination below each, and below N.
const ir::Node* FindBegins(ops::Builder& b, const ir::Node* keys, int64_t destinations);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SORT_POSITIONS_H_
