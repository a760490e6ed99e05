#include "server/sessions/operations/barrier.h"

#include "proto/check/check.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {

void Barrier::Execute(SessionState& session, uint64_t sequence) {
  {
    absl::MutexLock lock(&session.mutex);
    if (session.pending.AddBarrier(sequence)) {
      if (!session.closed) session.pending.SetExecuted(sequence, PendingBarrier());
      KILN_VALIDATE(session, session.entries());
      return;
    }
  }
  session.Finish({.sequence = sequence});
}

void SavedBarrier::Redo(SessionState& session, uint64_t sequence, size_t pending) const {
  // Otherwise it ends with the last operation before it.
  if (pending == 0) session.Finish({.sequence = sequence});
}

}  // namespace kiln::sessions
