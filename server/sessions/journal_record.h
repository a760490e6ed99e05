// The records of a session's journal, as bytes. Later builds read them: a change of the format
// needs a new version of the journal (journal.cc).
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

// An operation that was executed. If it was refused, `operation` is a Refused.
struct ExecutedRecord {
  uint64_t sequence = 0;
  uint64_t acknowledged = 0;  // by the client, when the record was written
  // Over all operations received so far.
  uint64_t highest_handle = 0;
  uint64_t highest_program = 0;
  // A Write has its bytes, even if they came from blobs, and the names of the blobs. A
  // DefineProgram has an error or `wire`.
  Operation operation{};
  std::string wire{};
};
// A Cancel that was received, and the runs that it has cancelled.
struct CancelledRecord {
  uint64_t first = 0;
  uint64_t cancel = 0;  // the number of the Cancel
  std::vector<uint64_t> runs;
};
// A blob that the session owns.
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

// Encodes an operation without the fields that depend on when the record is written.
std::string EncodeOperation(const Operation& operation);
// Encodes the head of the record of an operation, which is followed by the encoded operation and,
// for a Write, its bytes. Ignores `executed.operation`.
std::string EncodeHead(const ExecutedRecord& executed);
std::string Encode(const CancelledRecord& cancelled);
// The bytes of the blob follow the head.
std::string EncodeHead(const BlobRecord& blob);
std::string Encode(const TakenOverRecord& taken_over);
std::string Encode(const BlobsDeletedRecord& deleted);

// A summary of a journal, read before its records are executed again.
struct JournalSummary {
  int64_t records = 0;
  uint64_t acknowledged = 0;
  absl::flat_hash_set<uint64_t> cancelled{};  // runs
};
// Reads the journal to its end. Returns the errors of JournalReader::Next, or DATA_LOSS.
absl::StatusOr<JournalSummary> Summarize(JournalReader& journal);

// DATA_LOSS if `bytes` are not a record. Does not copy the data of blobs and Writes.
absl::StatusOr<JournalRecord> DecodeRecord(std::string bytes);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_JOURNAL_RECORD_H_
