// The operations that a client sends on its stream, and their answers: the wire messages,
// independent of the wire format.
#ifndef KILN_SERVER_SESSIONS_OPERATION_H_
#define KILN_SERVER_SESSIONS_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/buffers/placement.h"
#include "server/buffers/value.h"
#include "server/memory/host_memory.h"
#include "server/runtime/cache/graph_source.h"
#include "server/runtime/first_call.h"
#include "server/runtime/run/run.h"

namespace kiln::sessions {

// The requested placement of a value: sharded over devices as a mesh, or whole on one device; by
// default on the session's device. Its form has been checked (rpc), or `error` is set and is the
// answer.
struct Place {
  absl::Status error{};
  std::string device{};                                   // if there is no placement; may be empty
  std::shared_ptr<const buffers::Placement> placement{};  // over a mesh
};

// Handles and program ids are chosen by the client: never 0, never used twice.
struct DefineProgram {
  uint64_t program = 0;
  // An error if the graph could not be unpacked; it is then the answer.
  absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> graph;
  std::string name;
  // Names, one for each coordinate of the graph's mesh; empty: the session's device.
  std::vector<std::string> devices{};
  // Tracks progress since the message was received; null if the definition is executed again.
  std::shared_ptr<runtime::FirstCall> first_call{};
};
struct RunProgram {
  uint64_t program = 0;
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> outputs;
  runtime::Bindings bindings;
  bool report_time = false;
};
struct Write {
  uint64_t handle = 0;
  buffers::TensorType type;
  std::string data;                // if there are no blobs
  std::vector<std::string> blobs;  // their bytes are concatenated
  Place place{};
};
// Copies a value to another placement. If it already has that placement, binds the same value to
// another handle.
struct Move {
  uint64_t source = 0;
  uint64_t handle = 0;
  Place place{};
};
struct Read {
  uint64_t handle = 0;
};
struct Release {
  std::vector<uint64_t> handles;
  std::vector<std::string> blobs{};
};
struct ReleaseProgram {
  uint64_t program = 0;
};
struct Barrier {};
// Cancels the runs with numbers from `first` up to its own that have not been fully submitted to
// the device.
struct Cancel {
  uint64_t first = 0;
};
// Names the session and these tensors, and releases everything else that has a number. The session
// is kept for `keep` after its stream has ended; 0: for the lease.
struct NamedHandle {
  std::string name;
  uint64_t handle = 0;
};
inline constexpr size_t kNamedTensorsMax = 4096;
struct DetachAs {
  std::string name;
  absl::Duration keep;
  std::vector<NamedHandle> tensors;
};
// An operation that was refused, for example because the daemon had no memory for it. It fails, and
// the handles with it.
struct Refused {
  absl::Status error;
  std::vector<uint64_t> handles;
};
// The next of the pending operations of a restored session (image.h), by index; after the last, the
// end of resuming. No client sends it.
struct Resume {
  size_t pending = 0;
};
// A request of an unknown kind (from a newer client).
struct UnknownOperation {};

using Operation = std::variant<UnknownOperation, DefineProgram, RunProgram, Write, Read, Release,
                               ReleaseProgram, Barrier, Cancel, DetachAs, Refused, Resume, Move>;

// The bytes of host memory that an operation holds, except its graph, which is charged separately.
int64_t SizeOf(const Operation& operation);
// The bytes of its graph.
int64_t GraphBytes(const Operation& operation);
// The handles that it binds.
std::vector<uint64_t> NewHandles(const Operation& operation);
// The highest of these handles, or `highest` if that is higher; the same for programs.
uint64_t HighestHandle(const Operation& operation, uint64_t highest);
uint64_t HighestProgram(const Operation& operation, uint64_t highest);

struct Answer {
  uint64_t sequence = 0;
  absl::Status error{};
  // The value of a Read. Values never change, so its bytes are not copied; they are read when the
  // answer is sent or resent.
  runtime::ValuePointer value{};
  std::string digest{};
  double device_seconds = 0;
  memory::Charge charge{};
};
// The bytes of host memory that an answer holds.
int64_t SizeOf(const Answer& answer);

// Receives a session's answers: one attached stream. Thread-safe.
class Sink {
 public:
  virtual ~Sink() = default;
  // Both only put the message into the stream's queue, so they may be called with locks held; Flush
  // sends.
  virtual void PushAttached(uint64_t last_sequence) = 0;
  virtual void Push(std::shared_ptr<const Answer> answer) = 0;
  // The methods below are called without locks.
  virtual void Flush() = 0;
  // The session accepts operations again, after WantsMore had returned false.
  virtual void ReadMore() = 0;
  // Sends what is queued, then ends the stream.
  virtual void Close(const absl::Status& status) = 0;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATION_H_
