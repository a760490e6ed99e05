#include "server/sessions/operations/operation.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "proto/check/check.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

// The memory of an operation's object and its place in queues and tables.
constexpr int64_t kOperationBytes = 512;

// Calls `call` with the alternative that `variant` holds, if it can be called with it: if that kind
// has the member that `call` uses. Otherwise returns `otherwise`.
template <typename Result, typename Variant, typename Call>
Result Ask(Variant& variant, Result otherwise, const Call& call) {
  return std::visit(
      [&]<typename Kind>(Kind& kind) -> Result {
        if constexpr (std::is_invocable_v<const Call&, Kind&>) {
          return call(kind);
        } else {
          return otherwise;
        }
      },
      variant);
}

// Decodes the operation if `kind` is one of its numbers.
template <typename Kind>
bool DecodeIf(uint64_t kind, Decoder& in, Operation* operation) {
  if constexpr (requires { Kind::kLogKinds; }) {
    const auto end = std::end(Kind::kLogKinds);
    if (std::find(std::begin(Kind::kLogKinds), end, kind) == end) return false;
    *operation = Kind::DecodeFromLog(kind, in);
    return true;
  }
  return false;
}

template <typename... Kinds>
bool DecodeAny(uint64_t kind, Decoder& in, std::variant<Kinds...>* operation) {
  return (DecodeIf<Kinds>(kind, in, operation) || ...);
}

template <typename... Kinds>
void DecodeAt(size_t position, Decoder& in, const CheckpointSizes& sizes,
              std::variant<Kinds...>* operation) {
  size_t next = 0;
  const bool is_known =
      ((next++ == position && (*operation = Kinds::Decode(in, sizes), true)) || ...);
  KILN_CHECK(is_known) << "no operation has the position " << position;
}

std::vector<size_t> ToVector(absl::Span<const size_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

absl::StatusOr<std::vector<size_t>> CheckpointIndex::Of(
    absl::Span<const runtime::ValuePointer> values) {
  std::vector<size_t> all;
  for (const runtime::ValuePointer& value : values) {
    const auto number = Of(value);
    if (!number.ok()) return number.status();
    all.push_back(*number);
  }
  return all;
}

std::string_view NameOf(const Operation& operation) {
  constexpr std::string_view kNames[] = {
      "unknown", "define_program",  "run",     "write",  "read",
      "release", "release_program", "barrier", "cancel", "detach",
      "refused", "redo_pending",    "move"};
  static_assert(std::size(kNames) == std::variant_size_v<Operation>);
  return kNames[operation.index()];
}

int64_t SizeOf(const Operation& operation) {
  return kOperationBytes + Ask(operation, int64_t{0},
                               [](auto& kind) -> decltype(kind.bytes()) { return kind.bytes(); });
}

int64_t GraphBytes(const Operation& operation) {
  return Ask(operation, int64_t{0},
             [](auto& kind) -> decltype(kind.graph_bytes()) { return kind.graph_bytes(); });
}

absl::Span<const uint64_t> NewHandles(const Operation& operation) {
  return Ask(operation, absl::Span<const uint64_t>(),
             [](auto& kind) -> decltype(kind.new_handles()) { return kind.new_handles(); });
}

uint64_t NewProgram(const Operation& operation) {
  return Ask(operation, uint64_t{0},
             [](auto& kind) -> decltype(kind.new_program()) { return kind.new_program(); });
}

bool Receive(const Operation& operation, SessionState& session, uint64_t sequence) {
  return Ask(operation, false, [&](auto& kind) -> decltype(kind.Receive(session, sequence)) {
    return kind.Receive(session, sequence);
  });
}

AddWaiter MustWaitFor(const Operation& operation, SessionState& session, uint64_t sequence) {
  return Ask(operation, AddWaiter(),
             [&](auto& kind) -> decltype(kind.MustWaitFor(session, sequence)) {
               return kind.MustWaitFor(session, sequence);
             });
}

void Execute(Operation& operation, SessionState& session, uint64_t sequence) {
  std::visit(
      [&]<typename Kind>(Kind& kind) {
        if constexpr (!requires { Kind::kLogsItself; }) {
          if (session.recorder) {
            const std::string encoded = session.Encoded(kind);
            absl::MutexLock lock(&session.mutex);
            session.LogExecuted(sequence, encoded);
          }
        }
        kind.Execute(session, sequence);
      },
      operation);
}

std::string EncodeOperation(const Operation& operation) {
  Encoder out;
  std::visit(
      [&](const auto& kind) {
        if constexpr (requires { kind.EncodeForLog(out); }) kind.EncodeForLog(out);
      },
      operation);
  return out.Take();
}

Operation DecodeOperation(Decoder& in) {
  Operation operation;
  const uint64_t kind = in.Number();
  if (!DecodeAny(kind, in, &operation)) in.Fail();
  return operation;
}

std::string* DataInLog(Operation& operation) {
  return Ask(operation, static_cast<std::string*>(nullptr),
             [](auto& kind) -> decltype(kind.data_in_log()) { return kind.data_in_log(); });
}

bool TakesMemory(const Operation& operation) {
  return Ask(operation, false,
             [](auto& kind) -> decltype(bool{kind.kTakesMemory}) { return kind.kTakesMemory; });
}

absl::Status PrepareReplay(Operation& operation, SessionState& session) {
  return Ask(operation, absl::OkStatus(), [&](auto& kind) -> decltype(kind.PrepareReplay(session)) {
    return kind.PrepareReplay(session);
  });
}

bool CanBeRedone(const PendingOperation& operation) {
  return Ask(operation, true,
             [](auto& kind) -> decltype(kind.can_be_redone()) { return kind.can_be_redone(); });
}

absl::Span<const runtime::ValuePointer> Makes(const PendingOperation& operation) {
  return Ask(operation, absl::Span<const runtime::ValuePointer>(),
             [](auto& kind) -> decltype(kind.makes()) { return kind.makes(); });
}

absl::StatusOr<SavedOperation> Save(const PendingOperation& operation, CheckpointIndex& index) {
  return std::visit(
      [&](const auto& kind) -> absl::StatusOr<SavedOperation> {
        auto saved = kind.Save(index);
        if (!saved.ok()) return saved.status();
        return SavedOperation(*std::move(saved));
      },
      operation);
}

void Encode(Encoder& out, const SavedOperation& operation) {
  out.Number(operation.index());
  std::visit([&](const auto& kind) { kind.Encode(out); }, operation);
}

SavedOperation DecodeSaved(Decoder& in, const CheckpointSizes& sizes) {
  SavedOperation operation;
  DecodeAt(in.Below(std::variant_size_v<SavedOperation>), in, sizes, &operation);
  return operation;
}

void EncodeMore(Encoder& out, const SavedOperation& operation) {
  std::visit(
      [&](const auto& kind) {
        if constexpr (requires { kind.EncodeMore(out); }) kind.EncodeMore(out);
      },
      operation);
}

void DecodeMore(Decoder& in, const CheckpointSizes& sizes, SavedOperation* operation) {
  std::visit(
      [&](auto& kind) {
        if constexpr (requires { kind.DecodeMore(in, sizes); }) kind.DecodeMore(in, sizes);
      },
      *operation);
}

std::vector<size_t> Uses(const SavedOperation& operation) {
  return Ask(operation, std::vector<size_t>(),
             [](auto& kind) -> decltype(ToVector(kind.uses())) { return ToVector(kind.uses()); });
}

std::vector<size_t> Makes(const SavedOperation& operation) {
  return Ask(operation, std::vector<size_t>(),
             [](auto& kind) -> decltype(ToVector(kind.makes())) { return ToVector(kind.makes()); });
}

const RequestedPlacement* PlacedAt(const SavedOperation& operation) {
  return Ask(operation, static_cast<const RequestedPlacement*>(nullptr),
             [](auto& kind) -> decltype(&kind.placed()) { return &kind.placed(); });
}

}  // namespace kiln::sessions
