// Sizes of tensors whose dimensions are padded at the end, so that a mesh divides them.
#ifndef KILN_COMPILER_SHARD_PADDED_SHAPE_H_
#define KILN_COMPILER_SHARD_PADDED_SHAPE_H_

#include <optional>

#include "compiler/graph/mesh.h"
#include "compiler/ir/node.h"

namespace kiln::shard {

// The shape with every dimension that the spec splits rounded up to what comes out even: as many
// parts of graph::LocalShape as there are.
ir::Shape PaddedShape(const graph::Mesh& mesh, const graph::Spec& spec, const ir::Shape& shape);

// What a reshape of `from` to `to` makes of `padded`, a shape of `from`'s rank and no smaller, so
// that each element of `from` stays the element of `to` that it was: the padded dimension is the
// outermost of those that are merged or taken apart together. Nothing where that cannot be.
std::optional<ir::Shape> PaddedReshape(const ir::Shape& from, const ir::Shape& padded,
                                       const ir::Shape& to);

// With the sizes of `exact` in some dimensions.
template <typename Dims>
ir::Shape ExactIn(const Dims& dims, const ir::Shape& exact, ir::Shape shape) {
  for (const auto dim : dims) shape[dim] = exact[dim];
  return shape;
}

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PADDED_SHAPE_H_
