// Where tensors lie, as the wire says it.
#ifndef KILN_SERVER_RPC_PLACEMENT_H_
#define KILN_SERVER_RPC_PLACEMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kiln/v1/session.pb.h"
#include "server/buffers/placement.h"
#include "server/sessions/operation.h"

namespace kiln::rpc {

// INVALID_ARGUMENT: more than a mesh may have, or one of them twice. Which there are, the session
// knows.
absl::Status CheckDeviceNames(const std::vector<std::string>& devices);

// With an error if it makes no sense for any tensor.
sessions::Place PlaceFromProto(const v1::Placement& proto);

v1::Placement PlacementToProto(const buffers::Placement& placement);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_PLACEMENT_H_
