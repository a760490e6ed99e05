// How tensors lie on a grid of devices.
#ifndef KILN_COMPILER_GRAPH_MESH_H_
#define KILN_COMPILER_GRAPH_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::graph {

// Devices as a grid with named axes, row-major: the last axis counts fastest.
struct Mesh {
  struct Axis {
    std::string name;
    int64_t size = 1;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes;
  bool operator==(const Mesh&) const = default;
};

// For each dimension of a tensor the mesh's axes, by number, that split it into equal parts, the
// first one counting slowest. An axis splits one dimension at most; devices that differ in other
// axes alone have the same.
using Spec = std::vector<std::vector<int>>;

// Of a graph that runs on all devices of a mesh.
struct Sharding {
  Mesh mesh;
  std::vector<Spec> inputs;   // by input; updates lie as the inputs that they replace
  std::vector<Spec> outputs;  // by output
};

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_MESH_H_
