#include "clients/cpp/placement.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln::client {
namespace {

absl::StatusOr<uint32_t> AxisNumber(const std::string& name, const Mesh& mesh) {
  for (size_t i = 0; i < mesh.axes.size(); ++i)
    if (mesh.axes[i].name == name) return static_cast<uint32_t>(i);
  return absl::InvalidArgumentError(absl::StrCat(
      "the mesh has no axis \"", name, "\"; its axes: ",
      mesh.axes.empty() ? "none"
                        : absl::StrJoin(mesh.axes, ", ", [](std::string* out, const Mesh::Axis& a) {
                            absl::StrAppend(out, "\"", a.name, "\"");
                          })));
}

}  // namespace

absl::Status SetMesh(const Mesh& mesh, v1::Mesh* wire) {
  uint64_t places = 1;
  for (const Mesh::Axis& axis : mesh.axes) {
    v1::Mesh::Axis* to = wire->add_axes();
    to->set_name(axis.name);
    to->set_size(axis.size);
    places *= axis.size;
  }
  if (mesh.axes.empty() || places != mesh.devices.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the axes of the mesh have ", places,
                                                   " places, but it has ", mesh.devices.size(),
                                                   " devices; name one device for each place"));
  }
  return absl::OkStatus();
}

absl::Status SetSpec(const Spec& spec, const Mesh& mesh, v1::Spec* wire) {
  for (const std::vector<std::string>& names : spec) {
    v1::Spec::Dim* dim = wire->add_dims();
    for (const std::string& name : names) {
      const absl::StatusOr<uint32_t> axis = AxisNumber(name, mesh);
      if (!axis.ok()) return axis.status();
      dim->add_axes(*axis);
    }
  }
  return absl::OkStatus();
}

bool IsSet(const Placement& placement) {
  return !placement.device.empty() || !placement.mesh.axes.empty() ||
         !placement.mesh.devices.empty();
}

absl::Status SetPlacement(const Placement& placement, v1::Placement* wire) {
  if (!placement.device.empty()) {
    wire->add_devices(placement.device);
    return placement.mesh == Mesh{} && placement.spec.empty()
               ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrCat("a placement on ", placement.device,
                                                         " and on a mesh; name only one of them"));
  }
  for (const std::string& device : placement.mesh.devices) wire->add_devices(device);
  absl::Status status = SetMesh(placement.mesh, wire->mutable_mesh());
  if (status.ok()) status = SetSpec(placement.spec, placement.mesh, wire->mutable_spec());
  return status;
}

Placement PlacementOf(const v1::Placement& wire) {
  if (!wire.has_mesh()) return {.device = wire.devices().empty() ? "" : wire.devices(0)};
  Placement placement;
  placement.mesh.devices.assign(wire.devices().begin(), wire.devices().end());
  for (const v1::Mesh::Axis& axis : wire.mesh().axes())
    placement.mesh.axes.push_back({axis.name(), axis.size()});
  for (const v1::Spec::Dim& dim : wire.spec().dims()) {
    std::vector<std::string>& names = placement.spec.emplace_back();
    for (const uint32_t axis : dim.axes())
      if (axis < placement.mesh.axes.size()) names.push_back(placement.mesh.axes[axis].name);
  }
  return placement;
}

absl::StatusOr<std::vector<int64_t>> SpecInts(const Spec& spec, const Mesh& mesh) {
  std::vector<int64_t> ints;
  for (const std::vector<std::string>& names : spec) {
    ints.push_back(static_cast<int64_t>(names.size()));
    for (const std::string& name : names) {
      const absl::StatusOr<uint32_t> axis = AxisNumber(name, mesh);
      if (!axis.ok()) return axis.status();
      ints.push_back(*axis);
    }
  }
  return ints;
}

}  // namespace kiln::client
