#include "server/sessions/checkpoint/capture.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/sessions/checkpoint/session_recorder.h"

namespace kiln::sessions {
namespace {

using Kind = Checkpoint::Value::Kind;

absl::Status Unknown(absl::string_view what) { return absl::FailedPreconditionError(what); }

// OK if the value's memory was not lost.
absl::Status LossOf(const buffers::Value& value) {
  if (value.pool() != nullptr && value.lost()) return value.pool()->LostError();
  for (const auto& part : value.parts())
    if (absl::Status status = LossOf(*part); !status.ok()) return status;
  return absl::OkStatus();
}

// Adds values and origins to a checkpoint when their numbers are asked for.
class Index final : public CheckpointIndex {
 public:
  explicit Index(Checkpoint* checkpoint) : checkpoint_(*checkpoint) {}

  // Adds a value that a pending operation makes.
  absl::Status AddPending(const runtime::ValuePointer& value) {
    // The run has ended, and a part of its results may have been sent.
    if (value->resolved()) return Unknown("a run is ending on a device that hangs");
    // Equal results of a run are one value.
    if (!values_.contains(value.get())) values_[value.get()] = Add({.kind = Kind::kPending});
    return absl::OkStatus();
  }

  // Adds a value that has failed.
  void AddFailed(const runtime::ValuePointer& value, const absl::Status& error) {
    KILN_CHECK(!error.ok());
    values_[value.get()] = Add({.kind = Kind::kFailed, .error = error});
  }

  using CheckpointIndex::Of;
  absl::StatusOr<size_t> Of(const runtime::ValuePointer& value) override {
    KILN_CHECK(value != nullptr);
    const auto known = values_.find(value.get());
    if (known != values_.end()) return known->second;
    if (!value->resolved()) return Unknown("an upload to its device is not finished");
    Checkpoint::Value saved{.kind = Kind::kFailed, .error = value->status()};
    if (saved.error.ok()) saved.error = LossOf(*value);
    if (saved.error.ok()) {
      saved = {.kind = Kind::kBytes, .type = *value->type(), .value = value};
      saved.placement.sharding = value->placement();
      if (value->pool() != nullptr) {
        const std::string& device = value->pool()->device().info().name;
        if (device != checkpoint_.device) saved.placement.device = device;
      }
    }
    return values_[value.get()] = Add(std::move(saved));
  }

  absl::StatusOr<size_t> Of(const std::shared_ptr<const ProgramOrigin>& origin) override {
    KILN_CHECK(origin != nullptr);
    if (origin->wire.empty()) return Unknown("one of its programs cannot be stored");
    const auto [entry, is_new] = origins_.emplace(origin.get(), checkpoint_.origins.size());
    if (is_new) checkpoint_.origins.push_back(origin);
    return entry->second;
  }

 private:
  size_t Add(Checkpoint::Value value) {
    checkpoint_.values.push_back(std::move(value));
    return checkpoint_.values.size() - 1;
  }

  Checkpoint& checkpoint_;
  absl::flat_hash_map<const buffers::Value*, size_t> values_;
  absl::flat_hash_map<const ProgramOrigin*, size_t> origins_;
};

// If the operation is a cancelled run that is still on the device, adds its results and its answer:
// the client gets CANCELLED, and the run is not executed again.
bool AddIfCancelled(uint64_t sequence, const PendingOperation& operation, Index& index,
                    Checkpoint* checkpoint) {
  const auto* run = std::get_if<PendingRun>(&operation);
  if (run == nullptr || !run->is_cancelled) return false;
  const absl::Status error = runtime::CancelledRun();
  for (const runtime::ValuePointer& result : run->results) index.AddFailed(result, error);
  checkpoint->answers.push_back({.sequence = sequence, .error = error});
  return true;
}

absl::Status AddPending(const PendingTable& table, Index& index, Checkpoint* checkpoint) {
  std::vector<std::pair<uint64_t, const PendingOperation*>> pending;
  for (const auto& [sequence, entry] : table.entries()) {
    if (!entry.executed || !CanBeRedone(*entry.executed)) continue;
    if (!AddIfCancelled(sequence, *entry.executed, index, checkpoint))
      pending.emplace_back(sequence, &*entry.executed);
  }
  for (const auto& [sequence, operation] : pending)
    for (const runtime::ValuePointer& made : Makes(*operation))
      if (absl::Status status = index.AddPending(made); !status.ok()) return status;
  for (const auto& [sequence, operation] : pending) {
    auto saved = Save(*operation, index);
    if (!saved.ok()) return saved.status();
    checkpoint->pending.push_back({sequence, *std::move(saved)});
  }
  return absl::OkStatus();
}

absl::Status AddAnswers(const AnswerLog& answers, Index& index, Checkpoint* checkpoint) {
  for (const auto& answer : answers.Unacknowledged()) {
    Checkpoint::SavedAnswer saved{.sequence = answer->sequence,
                                  .error = answer->error,
                                  .digest = answer->digest,
                                  .device_seconds = answer->device_seconds};
    if (answer->value) {
      const auto number = index.Of(answer->value);
      if (!number.ok()) return number.status();
      // It was read before its device was lost.
      const Checkpoint::Value& value = checkpoint->values[*number];
      if (value.kind == Kind::kFailed) saved.error = value.error;
      if (value.kind == Kind::kPending) return Unknown("the value of an answer is not available");
      if (value.kind == Kind::kBytes) saved.value = *number;
    }
    checkpoint->answers.push_back(std::move(saved));
  }
  return absl::OkStatus();
}

absl::Status AddHandles(const HandleTable& handles, Index& index, Checkpoint* checkpoint) {
  checkpoint->used_handles = handles.used();
  for (const auto& [handle, value] : handles.values()) {
    const auto number = index.Of(value);
    if (!number.ok()) return number.status();
    checkpoint->handles.emplace_back(handle, *number);
  }
  return absl::OkStatus();
}

absl::Status AddPrograms(const ProgramTable& programs, Index& index, Checkpoint* checkpoint) {
  checkpoint->used_programs = programs.used();
  for (const auto& [number, program] : programs.programs()) {
    Checkpoint::Program saved{.number = number, .error = program.source.status()};
    if (saved.error.ok()) {
      const auto origin = index.Of(program.origin);
      if (!origin.ok()) return origin.status();
      saved.origin = *origin;
    }
    checkpoint->programs.push_back(std::move(saved));
  }
  return absl::OkStatus();
}

// Fills in the fields that change while a session is restored.
void Describe(const SessionState& session, Checkpoint* checkpoint) {
  session.mutex.AssertReaderHeld();
  checkpoint->generation = session.generation;
  checkpoint->cancelled.assign(session.cancelled.begin(), session.cancelled.end());
  if (const auto& parked = session.parked)
    checkpoint->parked = Park{parked->name, parked->keep, parked->tensors};
  checkpoint->remaining =
      session.stream.sink
          ? session.FullLease()
          : std::max(session.expires - session.services.clock.steady(), absl::ZeroDuration());
}

// No operation of the client has been executed since the restoration. Operations that were executed
// again since are executed once more: clients accept answers that come twice.
absl::StatusOr<Checkpoint> CaptureRestoration(const SessionState& session) {
  session.mutex.AssertReaderHeld();
  const Restoration& restoration = *session.restoration;
  KILN_CHECK_EQ(restoration.values.size(), restoration.checkpoint->values.size());
  Checkpoint checkpoint = *restoration.checkpoint;
  checkpoint.blobs.clear();
  for (size_t i = 0; i < checkpoint.values.size(); ++i) {
    Checkpoint::Value& saved = checkpoint.values[i];
    if (saved.kind != Kind::kBytes) continue;
    saved.value = restoration.values[i];
    KILN_CHECK(saved.value != nullptr);
    if (saved.value->lost()) return Unknown("its device was lost while the session was restored");
  }
  Describe(session, &checkpoint);
  return checkpoint;
}

// Makes sure that the pending runs do not write over their inputs from here on, since they are done
// again. They end with an error, which no client hears. Returns false if some have begun to.
bool KeepInputs(const PendingTable& table) {
  bool all_kept = true;
  for (const auto& [sequence, entry] : table.entries()) {
    const auto* run = entry.executed ? std::get_if<PendingRun>(&*entry.executed) : nullptr;
    if (run != nullptr && run->run != nullptr && !run->run->KeepInputs()) all_kept = false;
  }
  return all_kept;
}

}  // namespace

bool IsSettled(const SessionState& session, uint64_t executed) {
  session.mutex.AssertReaderHeld();
  if (!session.pending.HasAllUpTo(executed)) return false;
  const auto& entries = session.pending.entries();
  return std::none_of(entries.begin(), entries.end(), [](const auto& entry) {
    const auto& operation = entry.second.executed;
    if (!operation) return false;
    const auto* run = std::get_if<PendingRun>(&*operation);
    if (run != nullptr && run->has_committed()) return true;
    const auto made = Makes(*operation);
    return std::any_of(made.begin(), made.end(),
                       [](const auto& value) { return value->resolved(); });
  });
}

absl::StatusOr<Checkpoint> Capture(const SessionState& session, uint64_t executed) {
  session.mutex.AssertReaderHeld();
  if (!session.pending.HasAllUpTo(executed))
    return Unknown("an operation that cannot be repeated is unfinished");
  Checkpoint checkpoint;
  checkpoint.identity = session.identity;
  checkpoint.user = session.user->name;
  checkpoint.device = session.home().name();
  checkpoint.executed = executed;
  checkpoint.runs = session.runs;
  checkpoint.device_seconds = session.device_seconds;
  Index index(&checkpoint);
  absl::Status status = AddPending(session.pending, index, &checkpoint);
  if (status.ok()) status = AddAnswers(session.answers, index, &checkpoint);
  if (status.ok()) status = AddHandles(session.handles, index, &checkpoint);
  if (status.ok()) status = AddPrograms(session.programs, index, &checkpoint);
  if (!status.ok()) return status;
  Describe(session, &checkpoint);
  KILN_VALIDATE(checkpoint, checkpoint.values.size() + checkpoint.handles.size());
  return checkpoint;
}

void AddBlobs(const SessionState& session, Checkpoint* checkpoint) {
  for (auto& [name, data] : session.services.blobs->HeldBy(session.identity.number)) {
    const int64_t size = data->size();
    checkpoint->blobs.push_back({std::move(name), size, std::move(data)});
  }
}

absl::StatusOr<Checkpoint> Freeze(SessionState& session, const absl::Status& reason,
                                  absl::Duration timeout) {
  KILN_CHECK(!reason.ok());
  const uint64_t executed = session.executor.Pause();
  absl::MutexLock lock(&session.mutex);
  if (session.closed) return *session.closed;
  // A run may be ending just now on a device that is not idle.
  const auto is_settled = [&] {
    return session.restoration != nullptr || IsSettled(session, executed);
  };
  session.mutex.AwaitWithTimeout(absl::Condition(&is_settled), timeout);
  if (!KeepInputs(session.pending)) {
    // Runs that have committed since it was settled end soon, and no others follow.
    session.mutex.AwaitWithTimeout(absl::Condition(&is_settled), timeout);
    if (!KeepInputs(session.pending)) return Unknown("a run that replaces its inputs is unfinished");
  }
  auto checkpoint = session.restoration ? CaptureRestoration(session) : Capture(session, executed);
  if (!checkpoint.ok()) return checkpoint.status();
  // The current log is out of date with this checkpoint; the next daemon begins another.
  if (const SessionRecorder* recorder = RecorderOf(session))
    checkpoint->log = recorder->last_segment() + 1;
  checkpoint->is_live = false;
  session.closed = reason;
  session.frozen = true;
  KILN_VALIDATE(session, session.entries());
  // After `closed` is set, so that a client whose upload fails after this is told why the session
  // ended.
  AddBlobs(session, &*checkpoint);
  return checkpoint;
}

}  // namespace kiln::sessions
