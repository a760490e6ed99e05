// Answers with the bytes of a small value.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_READ_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_READ_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/sessions/operations/common.h"

namespace kiln::sessions {

struct Read {
  uint64_t handle = 0;

  static constexpr uint64_t kLogKinds[] = {4};
  void EncodeForLog(Encoder& out) const {
    out.Number(kLogKinds[0]);
    out.Number(handle);
  }
  static Read DecodeFromLog(uint64_t, Decoder& in) { return {in.Number()}; }
  void Execute(SessionState& session, uint64_t sequence);
};

struct SavedRead {
  size_t value = 0;

  void Encode(Encoder& out) const { out.Number(value); }
  static SavedRead Decode(Decoder& in, const CheckpointSizes& sizes) {
    return {in.Below(sizes.values)};
  }
  absl::Span<const size_t> uses() const { return {&value, 1}; }
  void Redo(SessionState& session, uint64_t sequence, size_t pending) const;
};

struct PendingRead {
  runtime::ValuePointer value;

  absl::StatusOr<SavedRead> Save(CheckpointIndex& index) const;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_READ_H_
