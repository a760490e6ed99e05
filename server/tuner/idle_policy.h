// When the daemon searches by itself: the policy of IdleTuner. Pure, without a clock.
#ifndef KILN_SERVER_TUNER_IDLE_POLICY_H_
#define KILN_SERVER_TUNER_IDLE_POLICY_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace kiln::tuner {

// All that the policy knows.
struct IdleState {
  struct Device {
    bool is_usable = true;  // it takes new work
    bool is_asked = false;  // a user's tuning has it
    // Trials on it use the machine's cores, as users' work on any device does.
    bool uses_cores = false;
    bool has_users_work = false;  // some waits or runs
    absl::Duration quiet;         // since users' last work came or ended
    double seconds_of_next = 0;   // the device time of the kernel to search next; 0: there is none
  };
  bool is_allowed = true;  // at this hour
  // Compilations and uploads. Runs follow them, so they count for each device.
  bool has_host_work = false;
  absl::Duration host_quiet = absl::InfiniteDuration();  // since the last of it came or ended
  std::vector<Device> devices;
  struct Search {
    size_t device = 0;
    bool is_paused = false;
  };
  std::optional<Search> search{};  // there is at most one
};

enum class IdleStep {
  kNothing,
  kBegin,   // a search on `device`
  kPause,   // the search
  kResume,  // it
  kEnd,     // it, for good
};
struct IdleDecision {
  IdleStep step = IdleStep::kNothing;
  size_t device = 0;
  bool operator==(const IdleDecision&) const = default;
};

// A device is quiet if users have had no work on it and on the host for `quiet_min`; one that uses
// the machine's cores, only if all devices are. Begins on the quiet device whose next kernel has
// taken the most time. Pauses as soon as the device is not quiet any more. Ends what the hour, the
// device or a user's tuning does not allow any more.
IdleDecision Decide(const IdleState& state, absl::Duration quiet_min);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_IDLE_POLICY_H_
