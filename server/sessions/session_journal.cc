// What a protected session writes down, so that it can be done again (journal.h): each operation
// before anything of it leaves the daemon, and whatever else changes the session.
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

// That the journal is known to have; of more, some are written to it again.
constexpr size_t kMostBlobs = 4096;

}  // namespace

void Session::JournalFirst(uint64_t sequence, const Operation& operation) {
  // Those that may be refused for reasons that do not lie in the session are written down when it
  // is known whether they were.
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
  // One whose graph was refused has its number; one that had no room has not.
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
    // What comes from the journal was not refused the first time.
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
    // Whoever asks for a data set again and again does not fill the disk with it.
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
      protection_.blobs.size() < kMostBlobs)
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
  // It may be protected by another one by now.
  if (protection_.journal == journal) LoseProtection(status);
}

void Session::LoseProtection(const absl::Status& why) {
  if (!protection_.journal) return;
  // Before anything leaves the daemon that is not in it.
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
