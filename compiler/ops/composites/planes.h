// A tensor seen along one axis.
#ifndef KILN_COMPILER_OPS_COMPOSITES_PLANES_H_
#define KILN_COMPILER_OPS_COMPOSITES_PLANES_H_

#include <cstdint>

#include "compiler/ir/node.h"

namespace kiln::ops {

// outer × length × inner: the sizes before the axis, its own, and those after it.
struct Planes {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

inline Planes PlanesOf(const ir::Shape& shape, int64_t axis) {
  Planes planes;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    (d < axis ? planes.outer : d == axis ? planes.length : planes.inner) *= shape[d];
  }
  return planes;
}

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_PLANES_H_
