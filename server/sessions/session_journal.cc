// Journaling of a protected session (journal.h): each operation is recorded before any of its
// effects leaves the daemon, and so is every other change of the session.
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/buffers/blob_name.h"
#include "server/errors/errors.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// The blobs known to be in the journal; above this limit some are written again.
constexpr size_t kBlobsMax = 4096;

}  // namespace

void Session::JournalFirst(uint64_t sequence, const Operation& operation) {
  // Operations that may be refused for reasons outside the session are recorded once it is known
  // whether they were.
  if (std::holds_alternative<RunProgram>(operation) || std::holds_alternative<Write>(operation) ||
      std::holds_alternative<DefineProgram>(operation) || std::holds_alternative<Move>(operation) ||
      std::holds_alternative<DetachAs>(operation) ||
      std::holds_alternative<sessions::Resume>(operation)) {
    return;
  }
  const std::string encoded = EncodeOperation(operation);
  absl::MutexLock lock(&mutex_);
  JournalExecuted(sequence, encoded);
  if (const auto* release = std::get_if<Release>(&operation)) ForgetBlobs(release->blobs);
}

void Session::ForgetBlobs(const std::vector<std::string>& names) {
  ++protection_.forgotten;
  for (const std::string& name : names) protection_.blobs.erase(name);
}

std::string Session::HeadOf(uint64_t sequence) const {
  return EncodeHead(ExecutedRecord{.sequence = sequence,
                                   .acknowledged = log_.acknowledged(),
                                   .highest_handle = highest_handle_,
                                   .highest_program = highest_program_});
}

void Session::JournalExecuted(uint64_t sequence, absl::string_view operation) {
  if (protection_.journal) AppendToJournal({HeadOf(sequence), operation});
}

void Session::JournalWrite(uint64_t sequence, absl::string_view operation,
                           const std::vector<std::string>& blobs,
                           const std::vector<absl::string_view>& bytes) {
  if (!wants_protection()) return;
  std::string head;
  std::shared_ptr<Journal> journal;
  {
    absl::MutexLock lock(&mutex_);
    ForgetBlobs(blobs);
    journal = protection_.journal;
    if (!journal) return;
    head = HeadOf(sequence);
  }
  std::vector<absl::string_view> record = {head, operation};
  record.insert(record.end(), bytes.begin(), bytes.end());
  AppendMuch(journal, record);
}

void Session::JournalRefusedDefinition(uint64_t sequence, const DefineProgram& operation,
                                       const absl::Status& error) {
  if (replaying_ && operation.graph.ok()) replay_error_.Update(error);
  if (!protection_.journal) return;
  // A program whose graph was refused keeps its number; one for which there was no memory does not.
  if (programs_.used().Contains(operation.program)) {
    JournalExecuted(sequence,
                    EncodeOperation(DefineProgram{operation.program, error, operation.name}));
  } else {
    JournalExecuted(sequence, EncodeOperation(Refused{error, {}}));
  }
}

void Session::Refuse(uint64_t sequence, absl::Span<const uint64_t> handles,
                     const absl::Status& error) {
  if (wants_protection()) {
    const absl::Status bounded = errors::WithBoundedMessage(user_->Explain(error));
    absl::MutexLock lock(&mutex_);
    // Operations from the journal were not refused the first time.
    if (replaying_) replay_error_.Update(error);
    JournalExecuted(sequence, EncodeOperation(Refused{bounded, {handles.begin(), handles.end()}}));
  }
  Fail(sequence, handles, error);
}

void Session::HoldsBlob(const std::string& name) {
  if (!wants_protection()) return;
  std::shared_ptr<Journal> journal;
  uint64_t forgotten;
  {
    absl::MutexLock lock(&mutex_);
    journal = protection_.journal;
    forgotten = protection_.forgotten;
    // A client that asks for the same data again and again must not fill the disk with it.
    if (protection_.blobs.contains(name)) return;
  }
  if (!journal) return;
  const buffers::BlobStore::Blob blob = services_.blobs->Peek(identity_.number, user_->name, name);
  if (!blob) return;
  const std::string head = EncodeHead(BlobRecord{name, {}});
  std::vector<absl::string_view> record = {head};
  record.insert(record.end(), blob->pieces().begin(), blob->pieces().end());
  AppendMuch(journal, record);
  if (!buffers::IsContentAddressed(name)) return;
  absl::MutexLock lock(&mutex_);
  if (protection_.journal == journal && protection_.forgotten == forgotten &&
      protection_.blobs.size() < kBlobsMax)
    protection_.blobs.insert(name);
}

void Session::DeletedBlobs(const std::vector<std::string>& names) {
  if (!wants_protection()) return;
  absl::MutexLock lock(&mutex_);
  ForgetBlobs(names);
  if (protection_.journal) AppendToJournal({Encode(BlobsDeletedRecord{names})});
}

void Session::AppendToJournal(absl::Span<const absl::string_view> record) {
  if (absl::Status status = protection_.journal->Append(record); !status.ok())
    LoseProtection(status);
}

void Session::AppendMuch(const std::shared_ptr<Journal>& journal,
                         absl::Span<const absl::string_view> record) {
  const absl::Status status = journal->Append(record);
  if (status.ok()) return;
  absl::MutexLock lock(&mutex_);
  // The session may have another journal by now.
  if (protection_.journal == journal) LoseProtection(status);
}

void Session::LoseProtection(const absl::Status& why) {
  if (!protection_.journal) return;
  // Before anything leaves the daemon that is not in the journal.
  protection_.journal->Discard();
  protection_.last_number = protection_.journal->number();
  protection_.journal.reset();
  protection_.blobs.clear();
  ++protection_.forgotten;
  if (std::exchange(protection_.has_image, false)) protection_.lost = why;
  protection_.due = services_.clock.steady() + identity_.snapshot_interval;
}

void Session::FailedLate(const absl::Status& why) {
  if (closed_) return;
  if (replaying_) replay_error_.Update(why);
  if (!protection_.journal) return;
  LoseProtection(why);
  protection_.due = services_.clock.steady();
}

bool Session::IsReplaying() const {
  if (!wants_protection()) return false;
  absl::MutexLock lock(&mutex_);
  return replaying_;
}

}  // namespace kiln::sessions
