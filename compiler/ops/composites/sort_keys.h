// Keys that order as tensors' elements do, so that sorting is a matter of integers. Internal to
// compiler/ops.
//
// Ascending order is the numbers', -0 equal to 0 and NaN after all others, as NumPy's; descending
// is its exact opposite, NaN first, as PyTorch's. Equal elements keep their order in both: each key
// comes with the position of its element, which decides between equal keys.
#ifndef KILN_COMPILER_OPS_COMPOSITES_SORT_KEYS_H_
#define KILN_COMPILER_OPS_COMPOSITES_SORT_KEYS_H_

#include "compiler/ops/builder.h"

namespace kiln::ops {

// Elements of (outer, length, inner) to be ordered along axis 1: smaller first. Where key and
// position fit one int64, `position` is null and `key` holds both, else they are two tensors.
struct SortKeys {
  const ir::Node* key = nullptr;
  const ir::Node* position = nullptr;
};

// Keys of x (outer, length, inner), padded to `padded` elements along axis 1 with some that come
// last.
SortKeys MakeSortKeys(Builder& b, const ir::Node* x, bool descending, int64_t padded);

// The position along axis 1, an int64, of the element that each key stands for.
const ir::Node* PositionsOf(Builder& b, const SortKeys& keys);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_SORT_KEYS_H_
