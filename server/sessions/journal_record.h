// What stands in a session's journal, as bytes. What is written here is read by later builds: a
// change of it is a new version of the journal (journal.cc).
#ifndef KILN_SERVER_SESSIONS_JOURNAL_RECORD_H_
#define KILN_SERVER_SESSIONS_JOURNAL_RECORD_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/sessions/journal.h"
#include "server/sessions/operation.h"

namespace kiln::sessions {

// An operation that was executed, or was refused then: such a one is a Refused.
struct ExecutedRecord {
  uint64_t sequence = 0;
  uint64_t acknowledged = 0;  // by the client, when this was written
  // Of all that had been received.
  uint64_t highest_handle = 0;
  uint64_t highest_program = 0;
  // A Write has its bytes, also where they were blobs', and their names. A DefineProgram has an
  // error, or `wire`.
  Operation operation{};
  std::string wire{};
};
// A Cancel that was received, and the runs that it has taken back.
struct CancelledRecord {
  uint64_t first = 0;
  uint64_t cancel = 0;  // the number of the Cancel
  std::vector<uint64_t> runs;
};
// A blob that the session holds.
struct BlobRecord {
  std::string name;
  std::string data;
};
struct BlobsDeletedRecord {
  std::vector<std::string> names;
};
struct TakenOverRecord {
  uint64_t generation = 0;
};
using JournalRecord =
    std::variant<ExecutedRecord, CancelledRecord, BlobRecord, TakenOverRecord, BlobsDeletedRecord>;

// A record's beginning: without what differs with the time at which it is written.
std::string EncodeOperation(const Operation& operation);
// The record of an operation is this, the operation and, of a Write, its bytes. The operation of
// `executed` is not looked at.
std::string EncodeHead(const ExecutedRecord& executed);
std::string Encode(const CancelledRecord& cancelled);
// The blob's bytes stand behind it.
std::string EncodeHead(const BlobRecord& blob);
std::string Encode(const TakenOverRecord& taken_over);
std::string Encode(const BlobsDeletedRecord& deleted);

// What is known of a journal before its records are done again.
struct JournalSummary {
  int64_t records = 0;
  uint64_t acknowledged = 0;
  absl::flat_hash_set<uint64_t> cancelled{};  // runs
};
// Reads it to the end; its errors, or DATA_LOSS.
absl::StatusOr<JournalSummary> Summarize(JournalReader& journal);

// DATA_LOSS if it is none. Large data is not copied.
absl::StatusOr<JournalRecord> DecodeRecord(std::string bytes);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_JOURNAL_RECORD_H_
