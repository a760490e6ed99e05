// Parks the session: its user leaves it running under a name, for another process to take over.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_PARK_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_PARK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/sessions/operations/common.h"

namespace kiln::sessions {

struct NamedHandle {
  std::string name;
  uint64_t handle = 0;
};
inline constexpr size_t kNamedTensorsMax = 4096;

// Names the session and these tensors, and releases everything else that has a number. The session
// is kept for `keep` after its stream has ended; 0: for the lease.
struct Park {
  std::string name;
  absl::Duration keep;
  std::vector<NamedHandle> tensors;

  static constexpr uint64_t kLogKinds[] = {9};
  static constexpr bool kLogsItself = true;
  int64_t bytes() const;
  void EncodeForLog(Encoder& out) const;
  static Park DecodeFromLog(uint64_t kind, Decoder& in);
  void Execute(SessionState& session, uint64_t sequence);
};

// The same fields in logs and checkpoints.
void EncodeParked(Encoder& out, const std::string& name, absl::Duration keep,
                  const std::vector<NamedHandle>& tensors);
Park DecodeParked(Decoder& in);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_PARK_H_
