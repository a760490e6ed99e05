#include "server/rpc/messages/placement.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/graph/mesh.h"
#include "compiler/ir/quoted.h"
#include "compiler/ops/rules/infer.h"
#include "server/errors/errors.h"

namespace kiln::rpc {
namespace {

absl::Status BadPlacement(const std::string& message) {
  return errors::WithReason(absl::InvalidArgumentError(message), "BAD_PLACEMENT");
}

graph::Mesh MeshFromProto(const v1::Mesh& proto) {
  graph::Mesh mesh;
  for (const v1::Mesh::Axis& axis : proto.axes()) mesh.axes.push_back({axis.name(), axis.size()});
  return mesh;
}

// Numbers that no mesh has become ones that CheckSpec refuses.
graph::Spec SpecFromProto(const v1::Spec& proto) {
  graph::Spec spec;
  for (const v1::Spec::Dim& dim : proto.dims()) {
    spec.emplace_back();
    for (const uint32_t axis : dim.axes())
      spec.back().push_back(static_cast<int>(std::min<uint32_t>(axis, graph::kMeshAxesMax)));
  }
  return spec;
}

absl::Status CheckForm(const buffers::Placement& placement) {
  if (absl::Status status = graph::CheckMesh(placement.mesh); !status.ok())
    return BadPlacement(std::string(status.message()));
  const int64_t places = graph::NumDevices(placement.mesh);
  if (static_cast<int64_t>(placement.devices.size()) != places) {
    return BadPlacement(absl::StrCat("the mesh has ", places, " places, but ",
                                     placement.devices.size(),
                                     " devices are named; name one device for each place"));
  }
  if (placement.spec.size() > ops::kRankMax) {
    return BadPlacement(absl::StrCat("a spec for ", placement.spec.size(), " dimensions; at most ",
                                     ops::kRankMax, " are allowed"));
  }
  // Sizes depend on the tensor; size 0 passes with every spec.
  const ir::Shape sizes(placement.spec.size(), 0);
  absl::Status status = graph::CheckSpec(placement.mesh, placement.spec, sizes, "the tensor");
  return status.ok() ? status : BadPlacement(std::string(status.message()));
}

}  // namespace

absl::Status CheckDeviceNames(const std::vector<std::string>& devices) {
  if (static_cast<int64_t>(devices.size()) > graph::kMeshDevicesMax) {
    return BadPlacement(absl::StrCat(devices.size(), " devices are named; at most ",
                                     graph::kMeshDevicesMax, " are allowed"));
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& device : devices) {
    if (!seen.insert(device).second)
      return BadPlacement(
          absl::StrCat("device ", Quoted(device), " is named twice; name each once"));
  }
  return absl::OkStatus();
}

sessions::RequestedPlacement PlacementFromProto(const v1::Placement& proto) {
  sessions::RequestedPlacement requested;
  auto placement = std::make_shared<buffers::Placement>();
  placement->devices.assign(proto.devices().begin(), proto.devices().end());
  requested.error = CheckDeviceNames(placement->devices);
  if (!requested.error.ok()) return requested;
  if (!proto.has_mesh()) {
    if (placement->devices.size() != 1) {
      requested.error = BadPlacement(absl::StrCat(
          "a placement without a mesh must name one device, not ", placement->devices.size()));
    } else {
      requested.device = std::move(placement->devices[0]);
    }
    return requested;
  }
  placement->mesh = MeshFromProto(proto.mesh());
  placement->spec = SpecFromProto(proto.spec());
  requested.error = CheckForm(*placement);
  if (requested.error.ok()) requested.sharding = std::move(placement);
  return requested;
}

v1::Placement PlacementToProto(const buffers::Placement& placement) {
  v1::Placement proto;
  for (const std::string& device : placement.devices) proto.add_devices(device);
  for (const graph::Mesh::Axis& axis : placement.mesh.axes) {
    v1::Mesh::Axis* added = proto.mutable_mesh()->add_axes();
    added->set_name(axis.name);
    added->set_size(static_cast<uint32_t>(axis.size));
  }
  for (const std::vector<int>& axes : placement.spec) {
    v1::Spec::Dim* dim = proto.mutable_spec()->add_dims();
    for (const int axis : axes) dim->add_axes(static_cast<uint32_t>(axis));
  }
  return proto;
}

}  // namespace kiln::rpc
