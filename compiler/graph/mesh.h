// The layout of tensors on a grid of devices.
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

// A grid of devices with named axes, row-major: the last axis varies fastest.
struct Mesh {
  struct Axis {
    std::string name;
    int64_t size = 1;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes;
  bool operator==(const Mesh&) const = default;
};

// For each dimension of a tensor the numbers of the mesh's axes that split it, the slowest-varying
// axis first. Parts are equal, except that the last ones are smaller if a size does not divide
// evenly. An axis splits at most one dimension. Devices that differ only in other axes hold the
// same part.
using Spec = std::vector<std::vector<int>>;

// For a graph in stages: the number in the mesh of the device that holds each input or output. An
// update is on the device of the input that it replaces.
struct Stages {
  std::vector<int> inputs;   // by input
  std::vector<int> outputs;  // by output
};

// The layouts of a graph that runs on all devices of a mesh.
struct Sharding {
  Mesh mesh;
  std::vector<Spec> inputs;   // by input; an update has the layout of the input that it replaces
  std::vector<Spec> outputs;  // by output
  // For people: the dimensions that were padded to divide evenly (shard/padding.h).
  std::string padding;
  // If set, each device computes its own part of the graph, as whole values (graph/stages.h). Then
  // the mesh has one axis and nothing is split.
  std::optional<Stages> stages;
};

// Encode returns a spec as the op "shard" stores it: for each dimension a count and then as many
// axes. Decode is the inverse. Requires: ir::IsSpec accepts `values`.
std::vector<int64_t> Encode(const Spec& spec);
Spec Decode(absl::Span<const int64_t> values, size_t rank);

// Returns whether no axis splits any dimension.
bool IsWhole(const Spec& spec);

inline constexpr int kMeshAxesMax = 4;
inline constexpr int64_t kMeshDevicesMax = 64;

int64_t NumDevices(const Mesh& mesh);
// Returns the number of devices among which dimension `dim` of a tensor with this layout is
// divided.
int64_t Parts(const Mesh& mesh, const Spec& spec, size_t dim);
// Returns the shape of each device's part of a tensor, rounded up where a size does not divide
// evenly.
ir::Shape LocalShape(const Mesh& mesh, const Spec& spec, const ir::Shape& shape);

// "[data, _, model+data]": for each dimension the names of the axes that split it.
std::string Print(const Mesh& mesh, const Spec& spec);

// Returns INVALID_ARGUMENT, with a message that begins with "the mesh".
absl::Status CheckMesh(const Mesh& mesh);
// Returns INVALID_ARGUMENT if a tensor of this shape cannot have this layout: the spec names an
// axis that the mesh does not have, names one twice, or has more dimensions than the tensor. Sizes
// need not divide evenly. `what` names the tensor.
absl::Status CheckSpec(const Mesh& mesh, const Spec& spec, const ir::Shape& shape,
                       std::string_view what);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_MESH_H_
