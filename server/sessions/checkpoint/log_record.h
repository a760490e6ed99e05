// The records of a session's log, as bytes. docs/formats/session-log.md specifies them.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_LOG_RECORD_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_LOG_RECORD_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/sessions/checkpoint/log.h"
#include "server/sessions/operations/operation.h"

namespace kiln::sessions {

// An operation that was executed. If it was refused, `operation` is a Refused.
struct ExecutedRecord {
  uint64_t sequence = 0;
  uint64_t acknowledged = 0;  // by the client, when the record was written
  // Over all operations received so far.
  uint64_t highest_handle = 0;
  uint64_t highest_program = 0;
  Operation operation{};
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
using LogRecord =
    std::variant<ExecutedRecord, CancelledRecord, BlobRecord, TakenOverRecord, BlobsDeletedRecord>;

// Encodes the head of the record of an operation, which is followed by the encoded operation and,
// for a Write, its bytes. Ignores `executed.operation`.
std::string EncodeHead(const ExecutedRecord& executed);
std::string Encode(const CancelledRecord& cancelled);
// The bytes of the blob follow the head.
std::string EncodeHead(const BlobRecord& blob);
std::string Encode(const TakenOverRecord& taken_over);
std::string Encode(const BlobsDeletedRecord& deleted);

// A summary of a log, read before its records are executed again.
struct LogSummary {
  int64_t records = 0;
  uint64_t acknowledged = 0;
  absl::flat_hash_set<uint64_t> cancelled{};  // runs
};
// Reads the log to its end. Returns the errors of SessionLogReader::Next, or DATA_LOSS.
absl::StatusOr<LogSummary> Summarize(SessionLogReader& log);

// DATA_LOSS if `bytes` are not a record. Does not copy the data of blobs and Writes.
absl::StatusOr<LogRecord> DecodeRecord(std::string bytes);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_LOG_RECORD_H_
