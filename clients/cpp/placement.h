// Converts meshes, specs and placements to and from the wire.
#ifndef KILN_CLIENTS_CPP_PLACEMENT_H_
#define KILN_CLIENTS_CPP_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kiln/mesh.h"
#include "kiln/v1/session.pb.h"

namespace kiln::client {

// Returns INVALID_ARGUMENT if the product of the axes' sizes is not the number of devices.
absl::Status SetMesh(const Mesh& mesh, v1::Mesh* wire);
// Returns INVALID_ARGUMENT, naming the axis, if the mesh does not have an axis.
absl::Status SetSpec(const Spec& spec, const Mesh& mesh, v1::Spec* wire);
// Returns INVALID_ARGUMENT as above, and if it names both a mesh and a device.
absl::Status SetPlacement(const Placement& placement, v1::Placement* wire);
Placement PlacementOf(const v1::Placement& wire);
// Returns true if it has a mesh or a device.
bool IsSet(const Placement& placement);

// The form that the op "shard" takes: for each dimension the number of axes, then their numbers.
absl::StatusOr<std::vector<int64_t>> SpecInts(const Spec& spec, const Mesh& mesh);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_PLACEMENT_H_
