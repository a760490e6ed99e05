#include "server/sessions/place_encoding.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::sessions {

void PutPlace(Encoder& out, const Place& place) {
  out.Number(place.placement ? 1 : 0);
  if (!place.placement) return out.Text(place.device);
  out.Number(place.placement->devices.size());
  for (const std::string& device : place.placement->devices) out.Text(device);
  out.Number(place.placement->mesh.axes.size());
  for (const graph::Mesh::Axis& axis : place.placement->mesh.axes) {
    out.Text(axis.name);
    out.Signed(axis.size);
  }
  out.Number(place.placement->spec.size());
  for (const std::vector<int>& axes : place.placement->spec) {
    out.Number(axes.size());
    for (const int axis : axes) out.Number(static_cast<uint64_t>(axis));
  }
}

Place TakePlace(Decoder& in) {
  Place place;
  if (in.Below(2) == 0) {
    place.device = std::string(in.Text());
    return place;
  }
  auto placement = std::make_shared<buffers::Placement>();
  for (size_t count = in.Count(); count > 0 && in.ok(); --count)
    placement->devices.emplace_back(in.Text());
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    std::string name(in.Text());
    placement->mesh.axes.push_back({std::move(name), in.Signed()});
  }
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    std::vector<int>& axes = placement->spec.emplace_back();
    for (size_t axis = in.Count(); axis > 0 && in.ok(); --axis)
      axes.push_back(static_cast<int>(in.Below(graph::kMeshAxesMax)));
  }
  const absl::flat_hash_set<std::string> different(placement->devices.begin(),
                                                   placement->devices.end());
  const ir::Shape sizes(placement->spec.size(), 0);
  if (!in.ok() || !graph::CheckMesh(placement->mesh).ok() ||
      graph::NumDevices(placement->mesh) != static_cast<int64_t>(placement->devices.size()) ||
      different.size() != placement->devices.size() || placement->spec.size() > ops::kRankMax ||
      !graph::CheckSpec(placement->mesh, placement->spec, sizes, "").ok()) {
    in.Fail();
    return {};
  }
  place.placement = std::move(placement);
  return place;
}

}  // namespace kiln::sessions
