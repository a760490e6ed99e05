// Copies a value to another placement. If it already has that placement, binds the same value to
// another handle.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_MOVE_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_MOVE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/sessions/operations/placement.h"

namespace kiln::sessions {

struct Move {
  uint64_t source = 0;
  uint64_t handle = 0;
  RequestedPlacement placement{};

  static constexpr uint64_t kLogKinds[] = {11};
  static constexpr bool kLogsItself = true;
  static constexpr bool kTakesMemory = true;
  int64_t bytes() const { return placement.bytes(); }
  absl::Span<const uint64_t> new_handles() const { return {&handle, 1}; }
  void EncodeForLog(Encoder& out) const;
  static Move DecodeFromLog(uint64_t kind, Decoder& in);
  void Execute(SessionState& session, uint64_t sequence);
};

// Numbers of values in a checkpoint.
struct SavedMove {
  size_t source = 0;
  size_t target = 0;
  RequestedPlacement placement{};

  void Encode(Encoder& out) const;
  static SavedMove Decode(Decoder& in, const CheckpointSizes& sizes);
  absl::Span<const size_t> uses() const { return {&source, 1}; }
  absl::Span<const size_t> makes() const { return {&target, 1}; }
  const RequestedPlacement& placed() const { return placement; }
  void Redo(SessionState& session, uint64_t sequence, size_t pending) const;
};

struct PendingMove {
  runtime::ValuePointer source;
  runtime::ValuePointer target;
  RequestedPlacement placement;

  absl::Span<const runtime::ValuePointer> makes() const { return {&target, 1}; }
  absl::StatusOr<SavedMove> Save(CheckpointIndex& index) const;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_MOVE_H_
