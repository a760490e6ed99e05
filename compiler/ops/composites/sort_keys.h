// Keys in the order of tensors' elements, so that sorting only compares integers. Internal to
// compiler/ops.
//
// Ascending order is the numeric order, with -0 equal to 0 and NaN last, like NumPy's. Descending
// order is its exact opposite, NaN first, like PyTorch's. Equal elements keep their order in both:
// each key has the position of its element, which breaks ties.
#ifndef KILN_COMPILER_OPS_COMPOSITES_SORT_KEYS_H_
#define KILN_COMPILER_OPS_COMPOSITES_SORT_KEYS_H_

#include "compiler/ops/builder.h"

namespace kiln::ops {

// Keys of the elements of (outer, length, inner), to be sorted along axis 1, smallest first. If key
// and position fit in one int64, `position` is null and `key` holds both; otherwise they are two
// tensors.
struct SortKeys {
  const ir::Node* key = nullptr;
  const ir::Node* position = nullptr;
};

// Returns the keys of x (outer, length, inner), padded along axis 1 to `padded` elements; the
// padding sorts last. `length` is the range of x's length: the form is the same within it.
SortKeys MakeSortKeys(Builder& b, const ir::Node* x, const SizeRange& length, bool descending,
                      int64_t padded);

// Returns what MakeSortKeys has at these positions (outer, count, inner) along axis 1.
SortKeys SortKeysAt(Builder& b, const ir::Node* x, bool descending, int64_t padded,
                    const ir::Node* positions);

// Returns the keys at these places (outer, count, inner) along axis 1.
SortKeys GatherSortKeys(Builder& b, const SortKeys& keys, const ir::Node* places);

// Adds keys that sort last, up to `length` of them along axis 1.
SortKeys PadSortKeys(Builder& b, const SortKeys& keys, int64_t length);

// Returns the first `count` keys along axis 1.
SortKeys SliceSortKeys(Builder& b, const SortKeys& keys, int64_t count);

// Returns the first in order of each block: block j of `blocks` has the keys j, j + blocks, … along
// axis 1. Requires: `blocks` divides their number.
SortKeys Lowest(Builder& b, const SortKeys& keys, int64_t blocks);

// Returns the position along axis 1 of each key's element, as int64.
const ir::Node* PositionsOf(Builder& b, const SortKeys& keys);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_SORT_KEYS_H_
