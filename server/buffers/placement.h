// How a tensor lies on several devices: an equal part on each.
#ifndef KILN_SERVER_BUFFERS_PLACEMENT_H_
#define KILN_SERVER_BUFFERS_PLACEMENT_H_

#include <cstdint>
#include <functional>
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

// The part of a tensor that a device has: a box.
struct Part {
  std::vector<int64_t> begin;  // by dimension
  std::vector<int64_t> shape;
  bool operator==(const Part&) const = default;
};
Part PartOf(const Placement& placement, const std::vector<int64_t>& shape, int64_t device);

// Calls `run` with each piece that stands together in the whole tensor and in the part, in order:
// bytes from the beginning of either, and how many.
void ForEachRun(const std::vector<int64_t>& shape, int64_t element_bytes, const Part& part,
                const std::function<void(int64_t whole, int64_t part, int64_t bytes)>& run);

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_PLACEMENT_H_
