// The sizes of a tensor around one axis.
#ifndef KILN_COMPILER_OPS_COMPOSITES_AROUND_AXIS_H_
#define KILN_COMPILER_OPS_COMPOSITES_AROUND_AXIS_H_

#include <cstdint>

#include "compiler/ir/node.h"

namespace kiln::ops {

// outer × length × inner: the product of the sizes before the axis, the axis's size, and the
// product of the sizes after it.
struct AroundAxis {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

inline AroundAxis ExtentsAround(const ir::Shape& shape, int64_t axis) {
  AroundAxis extents;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    (d < axis ? extents.outer : d == axis ? extents.length : extents.inner) *= shape[d];
  }
  return extents;
}

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_AROUND_AXIS_H_
