#include "server/sessions/operations/release.h"

#include <utility>

#include "server/sessions/session_state.h"

namespace kiln::sessions {

void Release::EncodeForLog(Encoder& out) const {
  out.Number(kLogKinds[0]);
  out.Numbers(handles);
  out.Texts(blobs);
}

Release Release::DecodeFromLog(uint64_t, Decoder& in) {
  std::vector<uint64_t> handles = in.Numbers();
  return {std::move(handles), in.Texts()};
}

void Release::Execute(SessionState& session, uint64_t sequence) {
  const std::string encoded = session.Encoded(*this);
  absl::Status status;
  std::vector<runtime::ValuePointer> released;  // destroyed without the lock: may be slow
  {
    absl::MutexLock lock(&session.mutex);
    session.LogExecuted(sequence, encoded);
    if (session.recorder) session.recorder->ForgetBlobs(blobs);
    status = session.handles.Release(handles, &released);
  }
  released.clear();
  session.services.blobs->Delete(session.identity.number, session.user->name, blobs);
  session.Finish({.sequence = sequence, .error = status});
}

}  // namespace kiln::sessions
