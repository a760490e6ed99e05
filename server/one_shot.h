// Does other work of kilnd than serving: checks of the configuration and the audit log, backup and
// restore.
#ifndef KILN_SERVER_ONE_SHOT_H_
#define KILN_SERVER_ONE_SHOT_H_

#include <optional>
#include <ostream>

#include "absl/time/time.h"
#include "server/config/flags.h"

namespace kiln {

// Returns the exit status of what the flags ask for; nullopt: nothing, the daemon is to serve.
// Results go to `out`, problems to `error`. `now` is the time of an event in a restored audit log.
std::optional<int> RunOneShot(const config::Loaded& loaded, absl::Time now, std::ostream& out,
                              std::ostream& error);

}  // namespace kiln

#endif  // KILN_SERVER_ONE_SHOT_H_
