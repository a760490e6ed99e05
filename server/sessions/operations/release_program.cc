#include "server/sessions/operations/release_program.h"

#include "server/sessions/session_state.h"

namespace kiln::sessions {

void ReleaseProgram::Execute(SessionState& session, uint64_t sequence) {
  absl::Status status;
  {
    absl::MutexLock lock(&session.mutex);
    status = session.programs.Release(program);
  }
  session.Finish({.sequence = sequence, .error = status});
}

}  // namespace kiln::sessions
