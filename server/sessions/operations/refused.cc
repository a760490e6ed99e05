#include "server/sessions/operations/refused.h"

#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {

void Refused::EncodeForLog(Encoder& out) const {
  out.Number(kLogKinds[0]);
  out.Status(error);
  out.Numbers(handles);
}

Refused Refused::DecodeFromLog(uint64_t, Decoder& in) {
  Refused refused{in.Status(), {}};
  if (refused.error.ok()) in.Fail();
  refused.handles = in.Numbers();
  return refused;
}

void Refused::Execute(SessionState& session, uint64_t sequence) {
  KILN_CHECK(!error.ok()) << "operation " << sequence;
  session.Fail(sequence, handles, error);
}

void UnknownOperation::Execute(SessionState& session, uint64_t sequence) {
  session.Fail(sequence, {},
               errors::WithReason(
                   absl::UnimplementedError("the request has no operation that this daemon knows; "
                                            "check that the client is not newer than the daemon"),
                   "UNKNOWN_OPERATION"));
}

}  // namespace kiln::sessions
