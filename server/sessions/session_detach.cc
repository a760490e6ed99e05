// Detaching a session under a name, and taking it over from another process.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

absl::Status Check(const DetachAs& operation) {
  if (absl::Status status = CheckName("a session", operation.name); !status.ok()) return status;
  if (operation.tensors.size() > kNamedTensorsMax) {
    return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  operation.tensors.size(), " tensors are named, but at most ",
                                  kNamedTensorsMax, " may be")),
                              "TOO_MANY_NAMES", {{"limit", absl::StrCat(kNamedTensorsMax)}});
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const NamedHandle& tensor : operation.tensors) {
    if (absl::Status status = CheckName("a tensor", tensor.name); !status.ok()) return status;
    if (!seen.insert(tensor.name).second) {
      return errors::WithReason(
          absl::InvalidArgumentError(absl::StrCat("two tensors have the name ", tensor.name)),
          "BAD_NAME", {{"name", tensor.name}});
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t Session::BytesOf(const std::vector<NamedHandle>& tensors) {
  constexpr int64_t kPerName = 128;
  return kPerName * (1 + static_cast<int64_t>(tensors.size()));
}

absl::Status Session::TakeName(DetachAs& operation) {
  for (const NamedHandle& tensor : operation.tensors)
    if (const auto value = handles_.Find(tensor.handle); !value.ok()) return value.status();
  auto charge = host_->Reserve(memory::Use::kHandles, BytesOf(operation.tensors));
  if (!charge.ok()) return charge.status();
  if (absl::Status status = services_.names->Claim(user_->name, operation.name, identity_.number);
      !status.ok()) {
    return status;
  }
  const absl::Duration keep = operation.keep > absl::ZeroDuration()
                                  ? std::min(operation.keep, services_.keep_max)
                                  : identity_.lease;
  detached_.emplace(
      Detached{std::move(operation.name), keep, std::move(operation.tensors), *std::move(charge)});
  return absl::OkStatus();
}

void Session::Execute(uint64_t sequence, DetachAs& operation) {
  absl::Status status = Check(operation);
  const std::string encoded = wants_protection() ? EncodeOperation(operation) : "";
  // The other tensors and programs, which have no name any more. Destroyed without the lock,
  // because they have their own locks.
  std::vector<runtime::ValuePointer> values;
  std::map<uint64_t, DefinedProgram> programs;
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    status = TakeName(operation);
    if (status.ok()) {
      absl::flat_hash_set<uint64_t> named;
      for (const NamedHandle& tensor : detached_->tensors) named.insert(tensor.handle);
      values = handles_.ReleaseAllBut(named);
      programs = programs_.TakeAll();
      JournalExecuted(sequence, encoded);
      protection_.blobs.clear();
      ++protection_.forgotten;
      // The name is in the header of the new segment, so the next daemon knows it before it has
      // read the whole journal.
      if (protection_.journal) {
        if (absl::Status begun = protection_.journal->Begin(detached_->name); !begun.ok())
          LoseProtection(begun);
      }
    }
  }
  if (!status.ok()) return Refuse(sequence, {}, status);
  // Earlier Writes hold the uploads that they need.
  services_.blobs->EndSession(identity_.number);
  Finish({.sequence = sequence});
}

absl::StatusOr<Session::Takeover> Session::TakeOver() {
  Takeover takeover;
  std::shared_ptr<Sink> earlier;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return *closed_;
    // Not all of its tensors are restored.
    if (resumption_) {
      return errors::WithReason(
          absl::UnavailableError("the session is being restored; attach again"), "RESTARTING");
    }
    // Operations of the previous client that have not been executed would be lost if the daemon
    // restarted now: the new client does not have them to send them again.
    if (executor_.executed() < log_.last_received()) {
      return errors::WithReason(
          absl::UnavailableError(
              "the session is still processing operations of its previous client; attach again"),
          "RESTARTING");
    }
    ++generation_;
    // The new client may use the numbers that the previous one has not sent again.
    cancelled_.clear();
    if (protection_.journal) AppendToJournal({Encode(TakenOverRecord{generation_})});
    takeover.id = IdOf(generation_);
    takeover.last_sequence = log_.last_received();
    takeover.last_handle = highest_handle_;
    takeover.last_program = highest_program_;
    if (detached_) {
      for (const NamedHandle& tensor : detached_->tensors) {
        const auto value = handles_.Find(tensor.handle);
        if (!value.ok()) continue;  // the client has released it since
        const std::shared_ptr<const buffers::TensorType>& type = (*value)->type();
        takeover.tensors.push_back(
            {tensor, type ? *type : buffers::TensorType(), (*value)->placement(),
             (*value)->pool() ? (*value)->pool()->device().info().name : ""});
      }
    }
    StartLease();
    earlier.swap(sink_);
    refused_more_ = false;
    end_after_answers_ = false;
  }
  if (earlier) earlier->Close(TakenOver());
  return takeover;
}

absl::Status Session::CheckGeneration(uint64_t generation) const {
  absl::MutexLock lock(&mutex_);
  return generation == generation_ ? absl::OkStatus() : TakenOver();
}

std::string Session::IdOf(uint64_t generation) const {
  return generation == 0 ? identity_.id : absl::StrCat(identity_.id, ".", generation);
}

absl::Status Session::TakenOver() {
  return errors::WithReason(
      absl::AbortedError("another process took over this session by its name"), "TAKEN_OVER");
}

}  // namespace kiln::sessions
