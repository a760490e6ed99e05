// Operations that are answered with an error.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_REFUSED_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_REFUSED_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/sessions/operations/common.h"

namespace kiln::sessions {

// An operation that was refused, for example because the daemon had no memory for it. It fails, and
// the handles with it.
struct Refused {
  absl::Status error;
  std::vector<uint64_t> handles;

  static constexpr uint64_t kLogKinds[] = {10};
  int64_t bytes() const { return HeldBy(handles); }
  void EncodeForLog(Encoder& out) const;
  static Refused DecodeFromLog(uint64_t kind, Decoder& in);
  void Execute(SessionState& session, uint64_t sequence);
};

// A request of an unknown kind (from a newer client).
struct UnknownOperation {
  static constexpr uint64_t kLogKinds[] = {0};
  void EncodeForLog(Encoder& out) const { out.Number(kLogKinds[0]); }
  static UnknownOperation DecodeFromLog(uint64_t, Decoder&) { return {}; }
  void Execute(SessionState& session, uint64_t sequence);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_REFUSED_H_
