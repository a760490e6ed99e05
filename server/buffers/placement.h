// The layout of a tensor on several devices: each has a part of it, in memory of the same size.
#ifndef KILN_SERVER_BUFFERS_PLACEMENT_H_
#define KILN_SERVER_BUFFERS_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/mesh.h"

namespace kiln::buffers {

// Checked: it has as many devices as the mesh has coordinates, and the spec fits the tensor.
struct Placement {
  std::vector<std::string> devices;  // by mesh coordinate, row-major
  graph::Mesh mesh;
  graph::Spec spec;

  // Whether the layout is the same for tensors of this rank: every device has the same part.
  bool IsSameAs(const Placement& other, size_t rank) const;
  // "[data, _] on cpu:0, cpu:1".
  std::string ToString() const;
};

// The part of a tensor that a device has: a box. If a dimension does not divide evenly, the last
// devices have less of it than the others, or nothing. Their memory has the same size; the part is
// at the beginning of each dimension of it, followed by padding, which may hold anything and is
// never returned to a client (compiler/shard/padding.h).
struct Part {
  std::vector<int64_t> begin;   // in the tensor, by dimension; at most its size
  std::vector<int64_t> shape;   // shape of the part
  std::vector<int64_t> memory;  // shape of its memory: graph::LocalShape, the same everywhere
  bool operator==(const Part&) const = default;
};
// Requires: `device` is the number of one of its devices.
Part PartOf(const Placement& placement, const std::vector<int64_t>& shape, int64_t device);

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_PLACEMENT_H_
