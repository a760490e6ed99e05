#include "server/sessions/operations/cancel.h"

#include <vector>

#include "proto/check/check.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {

bool Cancel::Receive(SessionState& session, uint64_t sequence) const {
  session.mutex.AssertHeld();
  KILN_CHECK_EQ(session.answers.last_received(), sequence);
  // Unless an earlier daemon has received it.
  session.AddCancelled({first, sequence});
  const std::vector<uint64_t> runs = session.pending.CancelRuns(
      first, session.MakeFailed(runtime::CancelledRun()), &session.handles);
  KILN_CHECK(runs.empty() || (runs.back() >= first && runs.front() < sequence));
  if (session.recorder) session.recorder->Cancelled(first, sequence, runs);
  return !runs.empty();
}

void Cancel::Execute(SessionState& session, uint64_t sequence) {
  {
    // The operations that it names have been executed, so the entry is not needed any more.
    absl::MutexLock lock(&session.mutex);
    auto& cancelled = session.cancelled;
    while (!cancelled.empty() && cancelled.front().cancel <= sequence) cancelled.pop_front();
    KILN_VALIDATE(session, session.entries());
  }
  session.Finish({.sequence = sequence});
}

}  // namespace kiln::sessions
