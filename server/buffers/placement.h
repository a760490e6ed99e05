// How a tensor lies on several devices: a part of it on each, in as much memory.
#ifndef KILN_SERVER_BUFFERS_PLACEMENT_H_
#define KILN_SERVER_BUFFERS_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/mesh.h"

namespace kiln::buffers {

// Checked: as many devices as the mesh has places, and the spec fits the tensor.
struct Placement {
  std::vector<std::string> devices;  // by place, row-major
  graph::Mesh mesh;
  graph::Spec spec;

  // Whether a tensor of this rank lies in the same way: every device has the same part of it.
  bool IsSameAs(const Placement& other, size_t rank) const;
  // "[data, _] on cpu:0, cpu:1".
  std::string ToString() const;
};

// The part of a tensor that a device has: a box. Where a dimension does not come out even, the last
// devices have less of it than the others, or nothing. Their memory is as large all the same: what
// they have stands at the beginning of each dimension of it, and behind that is padding, which may
// hold anything and is never read for anybody (compiler/shard/padding.h).
struct Part {
  std::vector<int64_t> begin;   // in the tensor, by dimension; nothing stands beyond its end
  std::vector<int64_t> shape;   // of what it has
  std::vector<int64_t> memory;  // the shape of its memory: graph::LocalShape, alike on all devices
  bool operator==(const Part&) const = default;
};
Part PartOf(const Placement& placement, const std::vector<int64_t>& shape, int64_t device);

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_PLACEMENT_H_
