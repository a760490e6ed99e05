// Makes a value from bytes in the message, or from uploaded blobs.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_WRITE_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_WRITE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/buffers/value.h"
#include "server/sessions/operations/placement.h"

namespace kiln::sessions {

struct Write {
  uint64_t handle = 0;
  buffers::TensorType type;
  std::string data;                // if there are no blobs
  std::vector<std::string> blobs;  // their bytes are concatenated
  RequestedPlacement placement{};

  static constexpr uint64_t kLogKinds[] = {3, 12};  // 12: with a placement
  static constexpr bool kLogsItself = true;
  static constexpr bool kTakesMemory = true;
  int64_t bytes() const {
    return HeldBy(data) + HeldBy(blobs) + HeldBy(type.shape) + placement.bytes();
  }
  absl::Span<const uint64_t> new_handles() const { return {&handle, 1}; }
  // The bytes, even if they came from blobs, follow the operation in a log.
  std::string* data_in_log() { return &data; }
  void EncodeForLog(Encoder& out) const;
  static Write DecodeFromLog(uint64_t kind, Decoder& in);
  void Execute(SessionState& session, uint64_t sequence);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_WRITE_H_
