// How tensors lie on a grid of devices.
#ifndef KILN_COMPILER_GRAPH_MESH_H_
#define KILN_COMPILER_GRAPH_MESH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

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

// For each dimension of a tensor the mesh's axes, by number, that split it, the first one counting
// slowest. Parts are equal, but for what a size that does not come out even leaves the last ones.
// An axis splits one dimension at most; devices that differ in other axes alone have the same.
using Spec = std::vector<std::vector<int>>;

// Of a graph in stages: the device, by its number in the mesh, that has an input or output. Updates
// lie where the inputs are that they replace.
struct Stages {
  std::vector<int> inputs;   // by input
  std::vector<int> outputs;  // by output
};

// Of a graph that runs on all devices of a mesh.
struct Sharding {
  Mesh mesh;
  std::vector<Spec> inputs;   // by input; updates lie as the inputs that they replace
  std::vector<Spec> outputs;  // by output
  std::string padding;        // for people: what was padded to come out even (shard/padding.h)
  // Each device computes its own part of the graph, whole values (graph/stages.h). The mesh has one
  // axis, and nothing is split.
  std::optional<Stages> stages;
};

// A spec as the op "shard" writes it, for each dimension a count and then as many axes; and back.
// Decode takes what ir::IsSpec accepts.
std::vector<int64_t> Encode(const Spec& spec);
Spec Decode(absl::Span<const int64_t> values, size_t rank);

// Whether no axis splits any dimension.
bool IsWhole(const Spec& spec);

inline constexpr int kMeshAxesMax = 4;
inline constexpr int64_t kMeshDevicesMax = 64;

int64_t NumDevices(const Mesh& mesh);
// Devices among which dimension `dim` of a tensor that lies so is divided.
int64_t Parts(const Mesh& mesh, const Spec& spec, size_t dim);
// The part that each device has of a tensor, rounded up where a size does not come out even.
ir::Shape LocalShape(const Mesh& mesh, const Spec& spec, const ir::Shape& shape);

// "[data, _, model+data]": for each dimension the names of the axes that split it.
std::string Print(const Mesh& mesh, const Spec& spec);

// INVALID_ARGUMENT, with the words of a sentence about "the mesh".
absl::Status CheckMesh(const Mesh& mesh);
// INVALID_ARGUMENT where a tensor of this shape cannot lie so: an axis that the mesh does not have
// or that occurs twice, more dimensions than the tensor has. Sizes need not come out even. `what`
// names the tensor.
absl::Status CheckSpec(const Mesh& mesh, const Spec& spec, const ir::Shape& shape,
                       std::string_view what);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_MESH_H_
