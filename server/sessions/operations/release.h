// Releases handles and blobs.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_RELEASE_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_RELEASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/sessions/operations/common.h"

namespace kiln::sessions {

struct Release {
  std::vector<uint64_t> handles;
  std::vector<std::string> blobs{};

  static constexpr uint64_t kLogKinds[] = {5};
  static constexpr bool kLogsItself = true;
  int64_t bytes() const { return HeldBy(handles) + HeldBy(blobs); }
  void EncodeForLog(Encoder& out) const;
  static Release DecodeFromLog(uint64_t kind, Decoder& in);
  void Execute(SessionState& session, uint64_t sequence);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_RELEASE_H_
