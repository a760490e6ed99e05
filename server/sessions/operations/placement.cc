#include "server/sessions/operations/placement.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/rules/infer.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {

int64_t RequestedPlacement::bytes() const {
  if (!sharding) return HeldBy(device);
  int64_t bytes = 256 + HeldBy(sharding->devices);
  for (const auto& axis : sharding->mesh.axes) bytes += HeldBy(axis.name) + 16;
  for (const auto& axes : sharding->spec) bytes += HeldBy(axes) + 24;
  return bytes;
}

void RequestedPlacement::ForEachDevice(const std::string& home,
                                       const std::function<void(const std::string&)>& add) const {
  if (!sharding) return add(device.empty() ? home : device);
  for (const std::string& each : sharding->devices) add(each);
}

void Encode(Encoder& out, const RequestedPlacement& placement) {
  const buffers::Placement* const sharding = placement.sharding.get();
  out.Number(sharding != nullptr ? 1 : 0);
  if (sharding == nullptr) return out.Text(placement.device);
  out.Texts(sharding->devices);
  out.Number(sharding->mesh.axes.size());
  for (const graph::Mesh::Axis& axis : sharding->mesh.axes) {
    out.Text(axis.name);
    out.Signed(axis.size);
  }
  out.Number(sharding->spec.size());
  for (const std::vector<int>& axes : sharding->spec) {
    out.Number(axes.size());
    for (const int axis : axes) out.Number(static_cast<uint64_t>(axis));
  }
}

RequestedPlacement DecodePlacement(Decoder& in) {
  if (in.Below(2) == 0) return {.device = std::string(in.Text())};
  auto sharding = std::make_shared<buffers::Placement>();
  sharding->devices = in.Texts();
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    std::string name(in.Text());
    sharding->mesh.axes.push_back({std::move(name), in.Signed()});
  }
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    std::vector<int>& axes = sharding->spec.emplace_back();
    for (size_t axis = in.Count(); axis > 0 && in.ok(); --axis)
      axes.push_back(static_cast<int>(in.Below(graph::kMeshAxesMax)));
  }
  const absl::flat_hash_set<std::string> different(sharding->devices.begin(),
                                                   sharding->devices.end());
  const ir::Shape sizes(sharding->spec.size(), 0);
  if (!in.ok() || !graph::CheckMesh(sharding->mesh).ok() ||
      graph::NumDevices(sharding->mesh) != static_cast<int64_t>(sharding->devices.size()) ||
      different.size() != sharding->devices.size() || sharding->spec.size() > ops::kRankMax ||
      !graph::CheckSpec(sharding->mesh, sharding->spec, sizes, "").ok()) {
    in.Fail();
    return {};
  }
  return {.sharding = std::move(sharding)};
}

absl::StatusOr<runtime::ValuePointer> Allocate(SessionState& session,
                                               std::shared_ptr<const buffers::TensorType> type,
                                               const RequestedPlacement& placement) {
  if (!placement.error.ok()) return placement.error;
  const auto on = [&](const std::string& device, std::shared_ptr<const buffers::TensorType> part)
      -> absl::StatusOr<runtime::ValuePointer> {
    const auto share = device.empty() ? &session.devices.home() : session.devices.Find(device);
    if (!share.ok()) return share.status();
    runtime::ManagedDevice& managed = *(*share)->device;
    if (absl::Status status = managed.CheckUsable(false); !status.ok()) return status;
    auto value = managed.pool()->Allocate(std::move(part), (*share)->account);
    if (!value.ok()) return managed.AfterFailure(value.status());
    return value;
  };
  if (!placement.sharding) return on(placement.device, std::move(type));
  const buffers::Placement& sharding = *placement.sharding;
  if (absl::Status status = graph::CheckSpec(sharding.mesh, sharding.spec, type->shape,
                                             absl::StrCat("the tensor ", type->ToString()));
      !status.ok())
    return errors::WithReason(absl::InvalidArgumentError(status.message()), "BAD_PLACEMENT");
  return buffers::AllocateParts(std::move(type), placement.sharding,
                                [&](size_t at, std::shared_ptr<const buffers::TensorType> part) {
                                  return on(sharding.devices[at], std::move(part));
                                });
}

bool HasPlacement(const SessionState& session, const buffers::Value& value,
                  const RequestedPlacement& placement) {
  if (placement.sharding) {
    return value.placement() != nullptr &&
           placement.sharding->IsSameAs(*value.placement(), value.type()->shape.size());
  }
  const std::string& device = placement.device.empty() ? session.home().name() : placement.device;
  return value.pool() != nullptr && value.pool()->device().info().name == device;
}

}  // namespace kiln::sessions
