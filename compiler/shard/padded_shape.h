// Sizes of tensors that are padded at the ends of dimensions, so that a mesh divides them.
#ifndef KILN_COMPILER_SHARD_PADDED_SHAPE_H_
#define KILN_COMPILER_SHARD_PADDED_SHAPE_H_

#include <optional>

#include "compiler/graph/mesh.h"
#include "compiler/ir/node.h"

namespace kiln::shard {

// Returns the shape with every dimension that the spec splits rounded up to a multiple of its
// parts: as many times graph::LocalShape as there are parts.
ir::Shape PaddedShape(const graph::Mesh& mesh, const graph::Spec& spec, const ir::Shape& shape);

// Returns the shape that a reshape of `from` to `to` gives for `padded`, which has `from`'s rank
// and no smaller sizes, so that every element of `from` stays the same element of `to`. In each
// group of dimensions that are merged or split, the padded one must be the outermost. Returns
// nullopt where that is impossible.
std::optional<ir::Shape> PaddedReshape(const ir::Shape& from, const ir::Shape& padded,
                                       const ir::Shape& to);

// Returns `shape` with the sizes of `exact` in some dimensions.
template <typename Dims>
ir::Shape ExactIn(const Dims& dims, const ir::Shape& exact, ir::Shape shape) {
  for (const auto dim : dims) shape[dim] = exact[dim];
  return shape;
}

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PADDED_SHAPE_H_
