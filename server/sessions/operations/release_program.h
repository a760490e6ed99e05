// Releases a program id.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_RELEASE_PROGRAM_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_RELEASE_PROGRAM_H_

#include <cstdint>

#include "server/sessions/operations/common.h"

namespace kiln::sessions {

struct ReleaseProgram {
  uint64_t program = 0;

  static constexpr uint64_t kLogKinds[] = {6};
  void EncodeForLog(Encoder& out) const {
    out.Number(kLogKinds[0]);
    out.Number(program);
  }
  static ReleaseProgram DecodeFromLog(uint64_t, Decoder& in) { return {in.Number()}; }
  void Execute(SessionState& session, uint64_t sequence);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_RELEASE_PROGRAM_H_
