#include "server/buffers/placement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/check/check.h"

namespace kiln::buffers {
namespace {

// The mesh coordinate of a device, one number for each axis.
std::vector<int64_t> PlaceOf(const graph::Mesh& mesh, int64_t device) {
  std::vector<int64_t> place(mesh.axes.size());
  for (size_t axis = mesh.axes.size(); axis-- > 0;) {
    place[axis] = device % mesh.axes[axis].size;
    device /= mesh.axes[axis].size;
  }
  KILN_CHECK_EQ(device, 0) << "a device beyond the mesh";
  return place;
}

}  // namespace

Part PartOf(const Placement& placement, const std::vector<int64_t>& shape, int64_t device) {
  KILN_DCHECK_GE(device, 0);
  const std::vector<int64_t> place = PlaceOf(placement.mesh, device);
  Part part{std::vector<int64_t>(shape.size()), shape,
            graph::LocalShape(placement.mesh, placement.spec, shape)};
  for (size_t dim = 0; dim < std::min(shape.size(), placement.spec.size()); ++dim) {
    int64_t number = 0;
    for (const int axis : placement.spec[dim])
      number = number * placement.mesh.axes[axis].size + place[axis];
    part.begin[dim] = number * part.memory[dim];
    part.shape[dim] = std::clamp(shape[dim] - part.begin[dim], int64_t{0}, part.memory[dim]);
  }
  return part;
}

bool Placement::IsSameAs(const Placement& other, size_t rank) const {
  if (devices != other.devices) return false;
  if (mesh == other.mesh && spec == other.spec) return true;
  // A shape that every split divides evenly.
  const std::vector<int64_t> shape(
      rank, std::max<int64_t>(graph::NumDevices(mesh) * graph::NumDevices(other.mesh), 1));
  for (size_t device = 0; device < devices.size(); ++device) {
    const auto number = static_cast<int64_t>(device);
    if (PartOf(*this, shape, number) != PartOf(other, shape, number)) return false;
  }
  return true;
}

std::string Placement::ToString() const {
  return absl::StrCat(graph::Print(mesh, spec), " on ", absl::StrJoin(devices, ", "));
}

}  // namespace kiln::buffers
