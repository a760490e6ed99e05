#include "server/sessions/operations/read.h"

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

// Answers the operation once the value is available.
void AwaitRead(SessionState& session, uint64_t sequence, const runtime::ValuePointer& value) {
  if (!value->resolved()) {
    absl::MutexLock lock(&session.mutex);
    if (!session.closed) session.pending.SetExecuted(sequence, PendingRead{value});
  }
  const auto read = [self = session.shared_from_this(), sequence, value](const absl::Status&) {
    if (!value->status().ok())
      return self->Finish({.sequence = sequence, .error = value->status()});
    self->Finish({.sequence = sequence, .value = value});
  };
  if (!value->AddWaiter(read)) read(absl::OkStatus());
}

absl::Status TooLarge(uint64_t handle, int64_t bytes, int64_t bytes_max) {
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("handle ", handle, " holds ", bytes,
                                              " bytes, but Read returns at most ", bytes_max,
                                              "; use BlobService.Download")),
      "TOO_LARGE_FOR_READ", {{"handle", absl::StrCat(handle)}});
}

}  // namespace

void Read::Execute(SessionState& session, uint64_t sequence) {
  absl::StatusOr<runtime::ValuePointer> value;
  {
    absl::MutexLock lock(&session.mutex);
    value = session.handles.Find(handle);
  }
  if (!value.ok()) return session.Fail(sequence, {}, value.status());
  const int64_t bytes_max = session.services.limits.read_bytes;
  if ((*value)->bytes() > bytes_max)
    return session.Fail(sequence, {}, TooLarge(handle, (*value)->bytes(), bytes_max));
  AwaitRead(session, sequence, *value);
}

absl::StatusOr<SavedRead> PendingRead::Save(CheckpointIndex& index) const {
  const auto saved = index.Of(value);
  if (!saved.ok()) return saved.status();
  return SavedRead{*saved};
}

void SavedRead::Redo(SessionState& session, uint64_t sequence, size_t) const {
  runtime::ValuePointer read;
  {
    absl::MutexLock lock(&session.mutex);
    if (!session.restoration) return;
    read = session.restoration->values[value];
  }
  // An earlier operation has made it.
  KILN_CHECK(read != nullptr) << "operation " << sequence;
  AwaitRead(session, sequence, read);
}

}  // namespace kiln::sessions
