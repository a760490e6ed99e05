#include "server/sessions/journal_record.h"

#include <algorithm>
#include <utility>

#include "server/sessions/encoding.h"
#include "server/sessions/place_encoding.h"

namespace kiln::sessions {
namespace {

// Stored in files: never renumber.
enum class RecordKind : uint64_t { kExecuted, kCancelled, kBlob, kTakenOver, kBlobsDeleted, kEnd };
enum class OperationKind : uint64_t {
  kUnknown,
  kDefine,
  kRun,
  kWrite,
  kRead,
  kRelease,
  kReleaseProgram,
  kBarrier,
  kCancel,
  kDetach,
  kRefused,
  // Since version 2.
  kMove,
  kWriteAt,
  kDefineOn,
  kEnd
};

void PutNumbers(Encoder& out, const std::vector<uint64_t>& numbers) {
  out.Number(numbers.size());
  for (const uint64_t number : numbers) out.Number(number);
}

std::vector<uint64_t> TakeNumbers(Decoder& in) {
  std::vector<uint64_t> numbers(in.Count());
  for (uint64_t& number : numbers) number = in.Number();
  return numbers;
}

void PutTexts(Encoder& out, const std::vector<std::string>& texts) {
  out.Number(texts.size());
  for (const std::string& text : texts) out.Text(text);
}

std::vector<std::string> TakeTexts(Decoder& in) {
  std::vector<std::string> texts(in.Count());
  for (std::string& text : texts) text = std::string(in.Text());
  return texts;
}

struct PutOperation {
  Encoder& out;

  void Kind(OperationKind kind) const { out.Number(static_cast<uint64_t>(kind)); }
  void operator()(const UnknownOperation&) const { Kind(OperationKind::kUnknown); }
  void operator()(const DefineProgram& define) const {
    Kind(define.devices.empty() ? OperationKind::kDefine : OperationKind::kDefineOn);
    if (!define.devices.empty()) PutTexts(out, define.devices);
    out.Number(define.program);
    out.Text(define.name);
    out.Status(define.graph.status());
    if (define.graph.ok()) out.Text((*define.graph)->Wire());
  }
  void operator()(const RunProgram& run) const {
    Kind(OperationKind::kRun);
    out.Number(run.program);
    PutNumbers(out, run.inputs);
    PutNumbers(out, run.outputs);
    out.Number(run.bindings.size());
    for (const auto& [name, value] : run.bindings) {
      out.Text(name);
      out.Signed(value);
    }
    out.Number(run.report_time ? 1 : 0);
  }
  void operator()(const Write& write) const {
    const bool is_home = !write.place.placement && write.place.device.empty();
    Kind(is_home ? OperationKind::kWrite : OperationKind::kWriteAt);
    if (!is_home) PutPlace(out, write.place);
    out.Number(write.handle);
    out.Number(static_cast<uint64_t>(write.type.dtype));
    out.Number(write.type.shape.size());
    for (const int64_t size : write.type.shape) out.Signed(size);
    PutTexts(out, write.blobs);
  }
  void operator()(const Move& move) const {
    Kind(OperationKind::kMove);
    out.Number(move.source);
    out.Number(move.handle);
    PutPlace(out, move.place);
  }
  void operator()(const Read& read) const {
    Kind(OperationKind::kRead);
    out.Number(read.handle);
  }
  void operator()(const Release& release) const {
    Kind(OperationKind::kRelease);
    PutNumbers(out, release.handles);
    PutTexts(out, release.blobs);
  }
  void operator()(const ReleaseProgram& release) const {
    Kind(OperationKind::kReleaseProgram);
    out.Number(release.program);
  }
  void operator()(const Barrier&) const { Kind(OperationKind::kBarrier); }
  void operator()(const Cancel& cancel) const {
    Kind(OperationKind::kCancel);
    out.Number(cancel.first);
  }
  void operator()(const DetachAs& detach) const {
    Kind(OperationKind::kDetach);
    out.Text(detach.name);
    out.Signed(absl::ToInt64Nanoseconds(detach.keep));
    out.Number(detach.tensors.size());
    for (const NamedHandle& tensor : detach.tensors) {
      out.Text(tensor.name);
      out.Number(tensor.handle);
    }
  }
  void operator()(const Refused& refused) const {
    Kind(OperationKind::kRefused);
    out.Status(refused.error);
    PutNumbers(out, refused.handles);
  }
  // Executed again from the image, never recorded.
  void operator()(const Resume&) const { Kind(OperationKind::kUnknown); }
};

DefineProgram TakeDefine(Decoder& in, std::string* wire) {
  DefineProgram define;
  define.program = in.Number();
  define.name = std::string(in.Text());
  define.graph = absl::UnknownError("");
  if (absl::Status error = in.Status(); !error.ok()) {
    define.graph = std::move(error);
  } else {
    *wire = std::string(in.Text());
  }
  return define;
}

RunProgram TakeRun(Decoder& in) {
  RunProgram run;
  run.program = in.Number();
  run.inputs = TakeNumbers(in);
  run.outputs = TakeNumbers(in);
  for (size_t bindings = in.Count(); bindings > 0 && in.ok(); --bindings) {
    std::string name(in.Text());
    run.bindings[std::move(name)] = in.Signed();
  }
  run.report_time = in.Below(2) != 0;
  return run;
}

Write TakeWrite(Decoder& in) {
  Write write;
  write.handle = in.Number();
  write.type.dtype = static_cast<ir::DType>(in.Below(ir::kNumDTypes));
  write.type.shape.resize(in.Count());
  for (int64_t& size : write.type.shape) size = in.Signed();
  write.blobs = TakeTexts(in);
  return write;
}

DetachAs TakeDetach(Decoder& in) {
  DetachAs detach;
  detach.name = std::string(in.Text());
  detach.keep = absl::Nanoseconds(in.Signed());
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    std::string name(in.Text());
    detach.tensors.push_back({std::move(name), in.Number()});
  }
  return detach;
}

Operation TakeOperation(Decoder& in, std::string* wire) {
  switch (static_cast<OperationKind>(in.Below(static_cast<size_t>(OperationKind::kEnd)))) {
    case OperationKind::kDefine:
      return TakeDefine(in, wire);
    case OperationKind::kRun:
      return TakeRun(in);
    case OperationKind::kWrite:
      return TakeWrite(in);
    case OperationKind::kMove: {
      Move move;
      move.source = in.Number();
      move.handle = in.Number();
      move.place = TakePlace(in);
      return move;
    }
    case OperationKind::kWriteAt: {
      Place place = TakePlace(in);
      Write write = TakeWrite(in);
      write.place = std::move(place);
      return write;
    }
    case OperationKind::kDefineOn: {
      std::vector<std::string> devices = TakeTexts(in);
      DefineProgram define = TakeDefine(in, wire);
      define.devices = std::move(devices);
      return define;
    }
    case OperationKind::kRead:
      return Read{in.Number()};
    case OperationKind::kRelease: {
      std::vector<uint64_t> handles = TakeNumbers(in);
      return Release{std::move(handles), TakeTexts(in)};
    }
    case OperationKind::kReleaseProgram:
      return ReleaseProgram{in.Number()};
    case OperationKind::kBarrier:
      return Barrier{};
    case OperationKind::kCancel:
      return Cancel{in.Number()};
    case OperationKind::kDetach:
      return TakeDetach(in);
    case OperationKind::kRefused: {
      absl::Status error = in.Status();
      if (error.ok()) in.Fail();
      return Refused{std::move(error), TakeNumbers(in)};
    }
    default:
      return UnknownOperation{};
  }
}

ExecutedRecord TakeExecuted(Decoder& in) {
  ExecutedRecord executed;
  executed.sequence = in.Number();
  executed.acknowledged = in.Number();
  executed.highest_handle = in.Number();
  executed.highest_program = in.Number();
  executed.operation = TakeOperation(in, &executed.wire);
  return executed;
}

// Returns the destination of the bytes that follow a record; null if there are none.
std::string* DataOf(JournalRecord& record) {
  if (auto* blob = std::get_if<BlobRecord>(&record)) return &blob->data;
  auto* executed = std::get_if<ExecutedRecord>(&record);
  auto* write = executed == nullptr ? nullptr : std::get_if<Write>(&executed->operation);
  return write == nullptr ? nullptr : &write->data;
}

Encoder BeginRecord(RecordKind kind) {
  Encoder out;
  out.Number(static_cast<uint64_t>(kind));
  return out;
}

}  // namespace

std::string EncodeOperation(const Operation& operation) {
  Encoder out;
  std::visit(PutOperation{out}, operation);
  return out.Take();
}

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
  PutNumbers(out, cancelled.runs);
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
  PutTexts(out, deleted.names);
  return out.Take();
}

absl::StatusOr<JournalRecord> DecodeRecord(std::string bytes) {
  Decoder in(bytes);
  JournalRecord record;
  switch (static_cast<RecordKind>(in.Below(static_cast<size_t>(RecordKind::kEnd)))) {
    case RecordKind::kExecuted:
      record = TakeExecuted(in);
      break;
    case RecordKind::kCancelled: {
      CancelledRecord cancelled;
      cancelled.first = in.Number();
      cancelled.cancel = in.Number();
      cancelled.runs = TakeNumbers(in);
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
      record = BlobsDeletedRecord{TakeTexts(in)};
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

absl::StatusOr<JournalSummary> Summarize(JournalReader& journal) {
  JournalSummary summary;
  while (true) {
    auto bytes = journal.Next();
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
