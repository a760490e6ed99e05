// The table of the operations that a client sends on its stream. Each is a struct in a file of its
// own, independent of the wire format, that has everything which is special about it:
//
//   Execute              executes it: binds handles, queues work. Does not wait for the device
//   EncodeForLog,        its form in a session's log; the numbers `kLogKinds` are stored in files,
//   DecodeFromLog        so they are never changed
// and, if it differs from the defaults:
//   bytes, graph_bytes   the host memory that it holds while it waits
//   new_handles,         what it makes
//   new_program
//   Receive              what it does when it is received, before the operations that wait
//   MustWaitFor          what it needs before it is executed
//   kLogsItself          Execute logs it, once it is known whether it is refused for reasons
//                        outside the session; others are logged before they are executed
//   data_in_log          where the bytes go that follow it in a log
//   kTakesMemory         replaying it waits until the operations before it have ended
//   PrepareReplay        what it needs after it was read from a log
//
// An operation that is answered later than it is executed has two more forms: Pending… has what is
// needed to do it again if the daemon ends first, and Saved… is the same in a checkpoint.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_OPERATION_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_OPERATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/sessions/operations/barrier.h"
#include "server/sessions/operations/cancel.h"
#include "server/sessions/operations/common.h"
#include "server/sessions/operations/define_program.h"
#include "server/sessions/operations/move.h"
#include "server/sessions/operations/park.h"
#include "server/sessions/operations/read.h"
#include "server/sessions/operations/redo_pending.h"
#include "server/sessions/operations/refused.h"
#include "server/sessions/operations/release.h"
#include "server/sessions/operations/release_program.h"
#include "server/sessions/operations/run.h"
#include "server/sessions/operations/write.h"

namespace kiln::sessions {

using Operation = std::variant<UnknownOperation, DefineProgram, RunProgram, Write, Read, Release,
                               ReleaseProgram, Barrier, Cancel, Park, Refused, RedoPending, Move>;

// Executing a pending operation again is equivalent to having waited: each run makes new
// values, and a run that has begun to write over old ones is waited for. The same order in both; a
// position is stored in checkpoints.
using PendingOperation =
    std::variant<PendingRun, PendingDefinition, PendingRead, PendingBarrier, PendingMove>;
using SavedOperation = std::variant<SavedRun, SavedDefinition, SavedRead, SavedBarrier, SavedMove>;
struct SavedPending {
  uint64_t sequence = 0;
  SavedOperation operation;
};

// The versions of the files that a daemon writes; it reads all earlier ones. A new number in
// `kLogKinds` needs a higher version of logs, a new Saved… a higher version of checkpoints.
inline constexpr uint64_t kLogVersion = 3;
inline constexpr uint32_t kCheckpointVersion = 5;

// The functions below call the members described above, or do what is the default.

// Its kind, as the field in ConnectRequest is called: "define_program".
std::string_view NameOf(const Operation& operation);
// The bytes of host memory that an operation holds, except its graph, which is charged separately.
int64_t SizeOf(const Operation& operation);
// The bytes of its graph.
int64_t GraphBytes(const Operation& operation);
// The handles that it binds. Valid as long as the operation.
absl::Span<const uint64_t> NewHandles(const Operation& operation);
// The program that it defines; 0 if there is none.
uint64_t NewProgram(const Operation& operation);
// Returns true if the caller must drop queued runs. Requires: the session's lock is held.
bool Receive(const Operation& operation, SessionState& session, uint64_t sequence);
// Returns how to wait for what the operation needs; null if it can be executed now.
AddWaiter MustWaitFor(const Operation& operation, SessionState& session, uint64_t sequence);
void Execute(Operation& operation, SessionState& session, uint64_t sequence);

// Encodes an operation for a log.
std::string EncodeOperation(const Operation& operation);
Operation DecodeOperation(Decoder& in);
// Where the bytes go that follow the operation in a log; null if there are none.
std::string* DataInLog(Operation& operation);
bool TakesMemory(const Operation& operation);
absl::Status PrepareReplay(Operation& operation, SessionState& session);

bool CanBeRedone(const PendingOperation& operation);
// The values that it makes: pending until it ends. Valid as long as the operation.
absl::Span<const runtime::ValuePointer> Makes(const PendingOperation& operation);
absl::StatusOr<SavedOperation> Save(const PendingOperation& operation, CheckpointIndex& index);

void Encode(Encoder& out, const SavedOperation& operation);
SavedOperation DecodeSaved(Decoder& in, const CheckpointSizes& sizes);
// The fields that were added with version 3 of checkpoints.
void EncodeMore(Encoder& out, const SavedOperation& operation);
void DecodeMore(Decoder& in, const CheckpointSizes& sizes, SavedOperation* operation);
// The numbers of the values that it uses and makes.
std::vector<size_t> Uses(const SavedOperation& operation);
std::vector<size_t> Makes(const SavedOperation& operation);
// Where it makes values; null if it names no device.
const RequestedPlacement* PlacedAt(const SavedOperation& operation);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_OPERATION_H_
