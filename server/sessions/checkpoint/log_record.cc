#include "server/sessions/checkpoint/log_record.h"

#include <algorithm>
#include <utility>

#include "server/sessions/encoding.h"

namespace kiln::sessions {
namespace {

// Stored in files: never renumber.
enum class RecordKind : uint64_t { kExecuted, kCancelled, kBlob, kTakenOver, kBlobsDeleted, kEnd };

ExecutedRecord TakeExecuted(Decoder& in) {
  ExecutedRecord executed;
  executed.sequence = in.Number();
  executed.acknowledged = in.Number();
  executed.highest_handle = in.Number();
  executed.highest_program = in.Number();
  executed.operation = DecodeOperation(in);
  return executed;
}

// Returns the destination of the bytes that follow a record; null if there are none.
std::string* DataOf(LogRecord& record) {
  if (auto* blob = std::get_if<BlobRecord>(&record)) return &blob->data;
  auto* executed = std::get_if<ExecutedRecord>(&record);
  return executed == nullptr ? nullptr : DataInLog(executed->operation);
}

Encoder BeginRecord(RecordKind kind) {
  Encoder out;
  out.Number(static_cast<uint64_t>(kind));
  return out;
}

}  // namespace

std::string EncodeHead(const ExecutedRecord& executed) {
  Encoder out = BeginRecord(RecordKind::kExecuted);
  out.Number(executed.sequence);
  out.Number(executed.acknowledged);
  out.Number(executed.highest_handle);
  out.Number(executed.highest_program);
  return out.Take();
}

std::string Encode(const CancelledRecord& cancelled) {
  Encoder out = BeginRecord(RecordKind::kCancelled);
  out.Number(cancelled.first);
  out.Number(cancelled.cancel);
  out.Numbers(cancelled.runs);
  return out.Take();
}

std::string EncodeHead(const BlobRecord& blob) {
  Encoder out = BeginRecord(RecordKind::kBlob);
  out.Text(blob.name);
  return out.Take();
}

std::string Encode(const TakenOverRecord& taken_over) {
  Encoder out = BeginRecord(RecordKind::kTakenOver);
  out.Number(taken_over.generation);
  return out.Take();
}

std::string Encode(const BlobsDeletedRecord& deleted) {
  Encoder out = BeginRecord(RecordKind::kBlobsDeleted);
  out.Texts(deleted.names);
  return out.Take();
}

absl::StatusOr<LogRecord> DecodeRecord(std::string bytes) {
  Decoder in(bytes);
  LogRecord record;
  switch (static_cast<RecordKind>(in.Below(static_cast<size_t>(RecordKind::kEnd)))) {
    case RecordKind::kExecuted:
      record = TakeExecuted(in);
      break;
    case RecordKind::kCancelled: {
      CancelledRecord cancelled;
      cancelled.first = in.Number();
      cancelled.cancel = in.Number();
      cancelled.runs = in.Numbers();
      record = std::move(cancelled);
      break;
    }
    case RecordKind::kBlob: {
      BlobRecord blob;
      blob.name = std::string(in.Text());
      record = std::move(blob);
      break;
    }
    case RecordKind::kBlobsDeleted:
      record = BlobsDeletedRecord{in.Texts()};
      break;
    default:
      record = TakenOverRecord{in.Number()};
  }
  std::string* data = DataOf(record);
  const size_t data_bytes = data == nullptr ? 0 : in.Rest().size();
  if (!in.AtEnd()) return absl::DataLossError("a record of the operation log is invalid");
  if (data != nullptr) {
    bytes.erase(0, bytes.size() - data_bytes);
    *data = std::move(bytes);
  }
  return record;
}

absl::StatusOr<LogSummary> Summarize(SessionLogReader& log) {
  LogSummary summary;
  while (true) {
    auto bytes = log.Next();
    if (!bytes.ok()) return bytes.status();
    if (!*bytes) return summary;
    const auto record = DecodeRecord(*std::move(*bytes));
    if (!record.ok()) return record.status();
    ++summary.records;
    if (const auto* executed = std::get_if<ExecutedRecord>(&*record))
      summary.acknowledged = std::max(summary.acknowledged, executed->acknowledged);
    if (const auto* cancelled = std::get_if<CancelledRecord>(&*record))
      summary.cancelled.insert(cancelled->runs.begin(), cancelled->runs.end());
  }
}

}  // namespace kiln::sessions
