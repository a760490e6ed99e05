// Where a client wants a value: placements in operations, in files, and in device memory.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_PLACEMENT_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_PLACEMENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/buffers/placement.h"
#include "server/buffers/value.h"
#include "server/sessions/operations/common.h"

namespace kiln::sessions {

// A value sharded over devices as a mesh, or whole on one device; by default on the session's own
// device. The form has been checked (rpc), or `error` is set and is the answer.
struct RequestedPlacement {
  absl::Status error{};
  std::string device{};                                  // if it is not sharded; may be empty
  std::shared_ptr<const buffers::Placement> sharding{};  // over a mesh

  bool is_home() const { return !sharding && device.empty(); }
  // The bytes of host memory that it holds.
  int64_t bytes() const;
  // Calls `add` with each device, once for each part there. `home`: the session's own device.
  void ForEachDevice(const std::string& home,
                     const std::function<void(const std::string&)>& add) const;
};

// Requires: the placement has no error.
void Encode(Encoder& out, const RequestedPlacement& placement);
// Fails the decoder if no request could have this placement.
RequestedPlacement DecodePlacement(Decoder& in);

// Allocates a pending value with this placement. NOT_FOUND: no such device; INVALID_ARGUMENT: the
// placement does not fit the type. Otherwise the errors of Pool::Allocate.
absl::StatusOr<runtime::ValuePointer> Allocate(SessionState& session,
                                               std::shared_ptr<const buffers::TensorType> type,
                                               const RequestedPlacement& placement);
// Returns whether the value has this placement.
bool HasPlacement(const SessionState& session, const buffers::Value& value,
                  const RequestedPlacement& placement);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_PLACEMENT_H_
