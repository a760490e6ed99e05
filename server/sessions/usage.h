// The usage of each device by each user, for lists and metrics.
#ifndef KILN_SERVER_SESSIONS_USAGE_H_
#define KILN_SERVER_SESSIONS_USAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/sessions/registry.h"

namespace kiln::sessions {

struct Usage {
  std::string user;
  std::string device;
  double device_seconds = 0;  // since the daemon started
  int64_t runs = 0;           // since the daemon started
  double wait_seconds = 0;    // of the runs in the queue, since the daemon started
  int64_t sessions = 0;       // now, as are the fields below
  int64_t memory_bytes = 0;
  int64_t programs = 0;
  int64_t waiting = 0;  // operations received that have not ended
};

// Lists all users who have opened a session since the daemon started, by name, each with every
// device. Sessions that open or close concurrently may be missing or included.
std::vector<Usage> ListUsage(const Registry& registry);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_USAGE_H_
