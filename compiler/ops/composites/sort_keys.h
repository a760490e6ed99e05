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
// padding sorts last.
SortKeys MakeSortKeys(Builder& b, const ir::Node* x, bool descending, int64_t padded);

// Returns the position along axis 1 of each key's element, as int64.
const ir::Node* PositionsOf(Builder& b, const SortKeys& keys);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_SORT_KEYS_H_
