// Executes the pending operations of a restored session again. No client sends this operation.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_REDO_PENDING_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_REDO_PENDING_H_

#include <cstddef>
#include <cstdint>

#include "server/sessions/operations/common.h"

namespace kiln::sessions {

struct RedoPending {
  // The index of the operation in the checkpoint; after the last, the end of the restoration.
  size_t pending = 0;

  static constexpr bool kLogsItself = true;  // never: it is done again from the checkpoint
  // The program of a run.
  AddWaiter MustWaitFor(SessionState& session, uint64_t sequence) const;
  void Execute(SessionState& session, uint64_t sequence);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_REDO_PENDING_H_
