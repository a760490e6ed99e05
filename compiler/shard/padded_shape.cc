#include "compiler/shard/padded_shape.h"

#include "compiler/ir/reshape_groups.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

// Returns the number of elements of dimensions [begin, end).
int64_t ProductOf(const ir::Shape& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t dim = begin; dim < end; ++dim) product *= shape[dim];
  return product;
}

size_t FirstNotOne(const ir::Shape& shape, size_t begin, size_t end) {
  while (begin < end && shape[begin] == 1) ++begin;
  return begin;
}

bool PadGroup(const ir::ReshapeGroup& group, const ir::Shape& from, const ir::Shape& padded,
              ir::Shape* to) {
  size_t longer = group.from;
  while (longer < group.from_end && padded[longer] == from[longer]) ++longer;
  if (longer == group.from_end) return true;
  // The dimensions after it must be unpadded, and those before it of size 1.
  for (size_t dim = group.from; dim < group.from_end; ++dim) {
    if (dim < longer ? from[dim] != 1 : dim > longer && padded[dim] != from[dim]) return false;
  }
  KILN_CHECK_GE(padded[longer], from[longer]) << "dimension " << longer;
  const size_t first = FirstNotOne(*to, group.to, group.to_end);
  if (first == group.to_end) return false;
  const int64_t elements = ProductOf(padded, longer, group.from_end);
  const int64_t inner = ProductOf(*to, first + 1, group.to_end);
  if (elements % inner != 0) return false;
  (*to)[first] = elements / inner;
  return true;
}

}  // namespace

ir::Shape PaddedShape(const graph::Mesh& mesh, const graph::Spec& spec, const ir::Shape& shape) {
  ir::Shape padded = graph::LocalShape(mesh, spec, shape);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const int64_t parts = graph::Parts(mesh, spec, dim);
    padded[dim] = parts == 1 ? shape[dim] : padded[dim] * parts;
  }
  return padded;
}

std::optional<ir::Shape> PaddedReshape(const ir::Shape& from, const ir::Shape& padded,
                                       const ir::Shape& to) {
  ir::Shape result = to;
  if (from == padded) return result;
  if (ir::NumElements(from) == 0) return std::nullopt;
  for (const ir::ReshapeGroup& group : ir::ReshapeGroups(from, to)) {
    if (!PadGroup(group, from, padded, &result)) return std::nullopt;
  }
  return result;
}

}  // namespace kiln::shard
