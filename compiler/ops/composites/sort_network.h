// Sorting with comparisons that do not depend on the values. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_COMPOSITES_SORT_NETWORK_H_
#define KILN_COMPILER_OPS_COMPOSITES_SORT_NETWORK_H_

#include <cstdint>

#include "compiler/ops/composites/sort_keys.h"

namespace kiln::ops {

// Returns the first `count` keys along axis 1, in order. Sorts only runs of the needed length; then
// merges pairs of runs into one until one is left. Requires: 1 <= count <= the keys' length.
SortKeys FirstInOrder(Builder& b, const SortKeys& keys, int64_t count);

// Returns the time that this takes for keys of `columns` × `length` elements, in the time of one
// element in one round.
double NetworkCost(int64_t columns, int64_t length, int64_t count);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_SORT_NETWORK_H_
