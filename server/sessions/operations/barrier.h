// Is answered once all operations before it have been.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_BARRIER_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_BARRIER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/sessions/operations/common.h"

namespace kiln::sessions {

struct Barrier {
  static constexpr uint64_t kLogKinds[] = {7};
  void EncodeForLog(Encoder& out) const { out.Number(kLogKinds[0]); }
  static Barrier DecodeFromLog(uint64_t, Decoder&) { return {}; }
  void Execute(SessionState& session, uint64_t sequence);
};

struct SavedBarrier {
  void Encode(Encoder&) const {}
  static SavedBarrier Decode(Decoder&, const CheckpointSizes&) { return {}; }
  void Redo(SessionState& session, uint64_t sequence, size_t pending) const;
};

struct PendingBarrier {
  absl::StatusOr<SavedBarrier> Save(CheckpointIndex&) const { return SavedBarrier(); }
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_BARRIER_H_
