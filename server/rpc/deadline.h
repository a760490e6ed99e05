// Relative deadlines for gRPC, measured by gRPC's own clock.
#ifndef KILN_SERVER_RPC_DEADLINE_H_
#define KILN_SERVER_RPC_DEADLINE_H_

#include <grpc/support/time.h>

#include "absl/time/time.h"

namespace kiln::rpc {

// Returns a deadline this long after gRPC receives it.
inline gpr_timespec FromNow(absl::Duration duration) {
  return gpr_time_from_millis(absl::ToInt64Milliseconds(duration), GPR_TIMESPAN);
}

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_DEADLINE_H_
