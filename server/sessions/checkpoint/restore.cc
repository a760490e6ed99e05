// Restores the tables of a session, and queues the operations that had not been answered.
#include "server/sessions/checkpoint/restore.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "proto/check/check.h"
#include "server/buffers/blob_name.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"

namespace kiln::sessions {
namespace {

using Kind = Checkpoint::Value::Kind;

absl::Status Fill(const runtime::ValuePointer& value, ByteSource& bytes, CopyDeadline& deadline) {
  for (int64_t offset = 0; offset < value->bytes(); offset += kValuePieceBytes) {
    const auto piece = std::make_shared<std::string>();
    piece->resize(static_cast<size_t>(std::min(kValuePieceBytes, value->bytes() - offset)));
    if (absl::Status status = bytes.Read(absl::MakeSpan(*piece)); !status.ok()) return status;
    const absl::Status filled = deadline.Await([&](CopyDeadline::Done done) {
      buffers::FillWhole(
          *value, offset, *piece,
          [piece, value, done = std::move(done)](const absl::Status& status) { done(status); });
    });
    if (!filled.ok()) return filled;
  }
  return absl::OkStatus();
}

// Restores one table after another. Requires: the session's lock is held.
class StateRestorer {
 public:
  StateRestorer(SessionState& session, const Checkpoint& checkpoint)
      : session_(session), restoration_(*session.restoration), checkpoint_(checkpoint) {
    KILN_CHECK(session.pending.empty() && session.answers.last_received() == 0);
    KILN_CHECK(session.handles.values().empty() && session.programs.size() == 0);
  }

  absl::Status Values(ByteSource& bytes, CopyDeadline& deadline) {
    for (const Checkpoint::Value& saved : checkpoint_.values) {
      runtime::ValuePointer value;
      if (saved.kind == Kind::kFailed) {
        value = session_.MakeFailed(saved.error);
      } else if (saved.kind == Kind::kBytes) {
        auto allocated = Allocate(session_, std::make_shared<const buffers::TensorType>(saved.type),
                                  saved.placement);
        if (!allocated.ok()) return allocated.status();
        value = *std::move(allocated);
        if (absl::Status status = Fill(value, bytes, deadline); !status.ok()) return status;
        value->Resolve(absl::OkStatus());
      }
      KILN_CHECK_EQ(value == nullptr, saved.kind == Kind::kPending);
      restoration_.values.push_back(std::move(value));
    }
    KILN_CHECK_EQ(restoration_.values.size(), checkpoint_.values.size());
    return absl::OkStatus();
  }

  absl::Status Blobs(ByteSource& bytes) {
    for (const Checkpoint::Blob& blob : checkpoint_.blobs) {
      auto upload = session_.services.blobs->BeginAgain(
          session_.identity.number, session_.user->name, blob.name,
          static_cast<uint64_t>(blob.size), *session_.host);
      absl::Status status = upload.status();
      std::string piece;
      for (int64_t offset = 0; offset < blob.size; offset += kValuePieceBytes) {
        piece.resize(static_cast<size_t>(std::min(kValuePieceBytes, blob.size - offset)));
        if (absl::Status read = bytes.Read(absl::MakeSpan(piece)); !read.ok()) return read;
        if (status.ok()) status = (*upload)->Append({piece});
      }
      if (status.ok()) status = (*upload)->Finish();
      // Sessions that shared a blob now have a copy each, for which there may be no memory. For a
      // missing digest, FindBlobs tells the client to send it again; other blobs are not sent
      // again.
      if (!status.ok() && buffers::DigestIn(blob.name).empty()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Programs() {
    for (const auto& origin : checkpoint_.origins) {
      auto source = session_.services.unpack_graph(origin->wire, *session_.host);
      if (!source.ok()) return source.status();
      restoration_.sources.push_back(*std::move(source));
    }
    session_.programs.RestoreUsed(checkpoint_.used_programs);
    for (const Checkpoint::Program& program : checkpoint_.programs) {
      if (program.error.ok()) {
        session_.programs.Restore(program.number, restoration_.sources[program.origin],
                                  checkpoint_.origins[program.origin]);
      } else {
        session_.programs.Restore(program.number, program.error, std::make_shared<ProgramOrigin>());
      }
    }
    for (const SavedPending& pending : checkpoint_.pending) {
      const auto* run = std::get_if<SavedRun>(&pending.operation);
      restoration_.programs.push_back(
          run == nullptr
              ? nullptr
              : session_.programs.CompileAgain(restoration_.sources[run->origin],
                                               *checkpoint_.origins[run->origin], run->bindings));
    }
    return absl::OkStatus();
  }

  absl::Status Handles() {
    const absl::Status status =
        session_.handles.Restore(checkpoint_.used_handles, checkpoint_.handles.size());
    if (!status.ok()) return status;
    for (const auto& [handle, number] : checkpoint_.handles) {
      if (restoration_.values[number])
        session_.handles.RestoreValue(handle, restoration_.values[number]);
      // The other handles are bound once their values are made, before the client's operations are
      // executed.
      if (checkpoint_.values[number].kind == Kind::kPending)
        restoration_.late_handles.emplace_back(handle, number);
    }
    return absl::OkStatus();
  }

  void Operations() {
    session_.runs = checkpoint_.runs;
    session_.device_seconds = checkpoint_.device_seconds;
    session_.restored_through = checkpoint_.executed;
    session_.answers.RestoreReceived(checkpoint_.executed);
    session_.cancelled.assign(checkpoint_.cancelled.begin(), checkpoint_.cancelled.end());
    for (const Checkpoint::SavedAnswer& saved : checkpoint_.answers) AddAnswer(saved);
    KILN_CHECK_LE(checkpoint_.pending.size(), checkpoint_.executed);
    session_.pending.RestoreEnded(checkpoint_.executed - checkpoint_.pending.size());
    for (size_t i = 0; i < checkpoint_.pending.size(); ++i) AddPending(i);
    session_.executor.Add(checkpoint_.executed, RedoPending{checkpoint_.pending.size()});
  }

  void Name() {
    session_.generation = checkpoint_.generation;
    session_.highest_handle = checkpoint_.used_handles.last();
    session_.highest_program = checkpoint_.used_programs.last();
    if (!checkpoint_.parked) return;
    const Park& saved = *checkpoint_.parked;
    memory::Charge charge = session_.host->Open(memory::Use::kHandles);
    charge.ForceResize(Parked::BytesOf(saved.tensors));
    session_.parked.emplace(Parked{saved.name, saved.keep, saved.tensors, std::move(charge)});
  }

 private:
  void AddAnswer(const Checkpoint::SavedAnswer& saved) {
    Answer answer{.sequence = saved.sequence,
                  .error = saved.error,
                  .value = saved.value ? restoration_.values[*saved.value] : nullptr,
                  .digest = saved.digest,
                  .device_seconds = saved.device_seconds};
    answer.charge = session_.host->Open(memory::Use::kAnswers);
    answer.charge.ForceResize(SizeOf(answer));
    session_.answers.Add(std::make_shared<const Answer>(std::move(answer)));
  }

  void AddPending(size_t number) {
    const SavedPending& saved = checkpoint_.pending[number];
    Operation operation = RedoPending{number};
    session_.pending.Admit(saved.sequence, &operation);
    if (std::holds_alternative<SavedBarrier>(saved.operation)) {
      session_.pending.SetExecuted(saved.sequence, PendingBarrier());
      // It waits for the earlier operations that have not been answered.
      if (number > 0) session_.pending.RestoreBarrier(saved.sequence, number);
    }
    // Sequence number 0: requests that wait for a value wait until all are done again and the
    // handles are bound.
    session_.executor.Add(0, std::move(operation));
  }

  SessionState& session_;
  Restoration& restoration_;
  const Checkpoint& checkpoint_;
};

}  // namespace

absl::Status Restore(SessionState& session, std::shared_ptr<const Checkpoint> checkpoint,
                     ByteSource& bytes, CopyDeadline& deadline) {
  KILN_CHECK(checkpoint != nullptr);
  absl::MutexLock lock(&session.mutex);
  KILN_CHECK(session.restoration == nullptr && !session.closed);
  const Checkpoint& saved = *checkpoint;
  session.restoration.reset(new Restoration{std::move(checkpoint), saved.pending, saved.origins});
  // Lowered limits take nothing away. Operations that are executed again take device memory, too.
  session.devices.SetExempt(true);
  session.host->SetExempt(true);
  StateRestorer restorer(session, saved);
  absl::Status status = restorer.Values(bytes, deadline);
  if (status.ok()) status = restorer.Blobs(bytes);
  if (status.ok()) status = restorer.Programs();
  if (status.ok()) status = restorer.Handles();
  if (status.ok()) {
    restorer.Operations();
    restorer.Name();
  }
  session.StartLease(saved.lease_then());
  session.host->SetExempt(false);
  if (status.ok()) KILN_VALIDATE(session, session.entries());
  return status;
}

absl::Status RestoreBlob(SessionState& session, const std::string& name, std::string data) {
  auto upload = session.services.blobs->BeginAgain(session.identity.number, session.user->name,
                                                   name, data.size(), *session.host);
  absl::Status status = upload.status();
  if (status.ok()) status = (*upload)->Append({data});
  if (status.ok()) status = (*upload)->Finish();
  // For a missing digest, FindBlobs tells the client to send it again; other blobs are not sent
  // again.
  return buffers::DigestIn(name).empty() ? status : absl::OkStatus();
}

}  // namespace kiln::sessions
