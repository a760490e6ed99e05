#include "server/sessions/operations/redo_pending.h"

#include <memory>
#include <utility>

#include "proto/check/check.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

// Binds the handles whose values have been made again.
void EndRestoration(SessionState& session) {
  std::unique_ptr<Restoration> ended;  // destroyed without the lock
  absl::MutexLock lock(&session.mutex);
  ended.swap(session.restoration);
  session.devices.SetExempt(session.is_replaying);
  if (session.closed || !ended) return;
  for (const auto& [handle, value] : ended->late_handles)
    session.handles.RestoreValue(handle, ended->values[value]);
  KILN_VALIDATE(session, session.entries());
}

}  // namespace

AddWaiter RedoPending::MustWaitFor(SessionState& session, uint64_t) const {
  absl::MutexLock lock(&session.mutex);
  if (!session.restoration || pending >= session.restoration->programs.size()) return nullptr;
  const auto& future = session.restoration->programs[pending];
  if (!future || future->resolved()) return nullptr;
  return [future](std::function<void()> resume) { return future->AddWaiter(std::move(resume)); };
}

void RedoPending::Execute(SessionState& session, uint64_t) {
  std::shared_ptr<const Checkpoint> checkpoint;  // keeps `all` alive
  const std::vector<SavedPending>* all = nullptr;
  {
    absl::MutexLock lock(&session.mutex);
    if (!session.restoration) return;
    checkpoint = session.restoration->checkpoint;
    all = &session.restoration->pending;
  }
  KILN_CHECK_LE(pending, all->size());
  if (pending == all->size()) return EndRestoration(session);
  const SavedPending& saved = (*all)[pending];
  std::visit([&](const auto& kind) { kind.Redo(session, saved.sequence, pending); },
             saved.operation);
}

}  // namespace kiln::sessions
