#include "server/tuner/idle_policy.h"

#include "absl/algorithm/container.h"
#include "proto/check/check.h"

namespace kiln::tuner {
namespace {

bool IsQuietAlone(const IdleState::Device& device, absl::Duration quiet_min) {
  return !device.has_users_work && device.quiet >= quiet_min;
}

bool IsQuiet(const IdleState& state, size_t i, absl::Duration quiet_min) {
  if (state.has_host_work || state.host_quiet < quiet_min) return false;
  if (!state.devices[i].uses_cores) return IsQuietAlone(state.devices[i], quiet_min);
  return absl::c_all_of(state.devices,
                        [&](const auto& device) { return IsQuietAlone(device, quiet_min); });
}

bool IsFree(const IdleState& state, size_t i) {
  return state.is_allowed && state.devices[i].is_usable && !state.devices[i].is_asked;
}

}  // namespace

IdleDecision Decide(const IdleState& state, absl::Duration quiet_min) {
  if (state.search) {
    const size_t device = state.search->device;
    KILN_CHECK_LT(device, state.devices.size());
    if (!IsFree(state, device)) return {IdleStep::kEnd, device};
    const bool is_quiet = IsQuiet(state, device, quiet_min);
    if (is_quiet != state.search->is_paused) return {};
    return {is_quiet ? IdleStep::kResume : IdleStep::kPause, device};
  }
  IdleDecision decision;
  double most = 0;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    const double seconds = state.devices[i].seconds_of_next;
    if (seconds <= most || !IsFree(state, i) || !IsQuiet(state, i, quiet_min)) continue;
    most = seconds;
    decision = {IdleStep::kBegin, i};
  }
  return decision;
}

}  // namespace kiln::tuner
