// Meshes, specs and placements on the wire.
#ifndef KILN_CLIENTS_CPP_PLACEMENT_H_
#define KILN_CLIENTS_CPP_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kiln/mesh.h"
#include "kiln/v1/session.pb.h"

namespace kiln::client {

// INVALID_ARGUMENT if the axes' sizes do not make up the number of devices.
absl::Status SetMesh(const Mesh& mesh, v1::Mesh* wire);
// INVALID_ARGUMENT, naming it, for an axis that the mesh does not have.
absl::Status SetSpec(const Spec& spec, const Mesh& mesh, v1::Spec* wire);
// INVALID_ARGUMENT as above, and if it names a mesh and a device.
absl::Status SetPlacement(const Placement& placement, v1::Placement* wire);
Placement PlacementOf(const v1::Placement& wire);
// Whether it says anything.
bool IsSet(const Placement& placement);

// As the op "shard" takes it: of each dimension the number of axes, then these by number.
absl::StatusOr<std::vector<int64_t>> SpecInts(const Spec& spec, const Mesh& mesh);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_PLACEMENT_H_
