// Cancels runs. It takes effect when it is received, before waiting operations.
//
// It cancels the last of the runs that it names: runs go to the device in order. A run that was
// fully submitted to the device continues to its end; one that was partly submitted stops at the
// next slice. Each cancelled run and its outputs fail with CANCELLED. Cancelling changes no state:
// of the inputs that a run would have updated, either all keep their values or, if it was not
// cancelled, none. Operations after the Cancel see the result.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_CANCEL_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_CANCEL_H_

#include <cstdint>

#include "server/sessions/operations/common.h"

namespace kiln::sessions {

// Cancels the runs with numbers from `first` up to its own that have not been fully submitted to
// the device.
struct Cancel {
  uint64_t first = 0;

  static constexpr uint64_t kLogKinds[] = {8};
  void EncodeForLog(Encoder& out) const {
    out.Number(kLogKinds[0]);
    out.Number(first);
  }
  static Cancel DecodeFromLog(uint64_t, Decoder& in) { return {in.Number()}; }
  // Cancels queued runs, and marks those that are not executed yet to fail. Returns true if the
  // caller must drop queued runs. Requires: the session's lock is held.
  bool Receive(SessionState& session, uint64_t sequence) const;
  void Execute(SessionState& session, uint64_t sequence);
};

// A Cancel that has been received and not executed: the runs that it names remain cancelled when
// the client sends them again.
struct ReceivedCancel {
  uint64_t first = 0;
  uint64_t cancel = 0;  // the number of the Cancel
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_CANCEL_H_
