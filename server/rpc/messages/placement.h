// Conversion of placements between the wire and the daemon's form.
#ifndef KILN_SERVER_RPC_MESSAGES_PLACEMENT_H_
#define KILN_SERVER_RPC_MESSAGES_PLACEMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kiln/v1/session.pb.h"
#include "server/buffers/placement.h"
#include "server/sessions/operations/placement.h"

namespace kiln::rpc {

// INVALID_ARGUMENT: more devices than a mesh may have, or duplicates. The session checks that they
// exist.
absl::Status CheckDeviceNames(const std::vector<std::string>& devices);

// The result has an error if the placement is valid for no tensor.
sessions::RequestedPlacement PlacementFromProto(const v1::Placement& proto);

v1::Placement PlacementToProto(const buffers::Placement& placement);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGES_PLACEMENT_H_
