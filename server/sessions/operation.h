// What a client asks on its stream, and what it is answered; the wire's messages without the wire.
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
#include "server/runtime/first_call.h"
#include "server/runtime/graph_source.h"
#include "server/runtime/run.h"

namespace kiln::sessions {

// Where a value is asked to lie: on devices as a mesh, or all on one of them, or, where nothing is
// said, on the session's. Its form has been checked (rpc), or it has an error, which is the answer.
struct Place {
  absl::Status error{};
  std::string device{};                                   // without a placement; may be empty
  std::shared_ptr<const buffers::Placement> placement{};  // with a mesh
};

// Handles and program ids are the client's numbers: never 0, never used twice.
struct DefineProgram {
  uint64_t program = 0;
  // An error if the graph is broken already in its outer form; it is then the answer.
  absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> graph;
  std::string name;
  // By name, one for each place of the graph's mesh; empty: the session's.
  std::vector<std::string> devices{};
  // Since the message came; null: of one that is done again.
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
  std::vector<std::string> blobs;  // whose bytes follow each other
  // Where it is to lie.
  Place place{};
};
// A copy that lies elsewhere; where it lies there already, the same value under another handle.
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
// Cancels the runs with numbers from `first` up to its own that have not been handed to the device
// whole.
struct Cancel {
  uint64_t first = 0;
};
// The session and these tensors get names, and everything else that has a number is released. It is
// kept for so long once its stream has ended; 0: for the lease.
struct NamedHandle {
  std::string name;
  uint64_t handle = 0;
};
inline constexpr size_t kMostNamedTensors = 4096;
struct DetachAs {
  std::string name;
  absl::Duration keep;
  std::vector<NamedHandle> tensors;
};
// An operation that had no room in the daemon's memory: fails, and the handles with it.
struct Refused {
  absl::Status error;
  std::vector<uint64_t> handles;
};
// The next of the operations that a kept session had not answered (image.h), by its place; behind
// the last of them, the end of resuming. No client sends it.
struct Resume {
  size_t pending = 0;
};
// A request that is none of these (a newer client's).
struct UnknownOperation {};

using Operation = std::variant<UnknownOperation, DefineProgram, RunProgram, Write, Read, Release,
                               ReleaseProgram, Barrier, Cancel, DetachAs, Refused, Resume, Move>;

// Bytes of host memory that an operation holds, but for its graph, which is charged by itself.
int64_t SizeOf(const Operation& operation);
// Those of its graph.
int64_t GraphBytes(const Operation& operation);
// The handles that it would bind.
std::vector<uint64_t> NewHandles(const Operation& operation);
// The highest of them, or `highest` if that is more; likewise of programs.
uint64_t HighestHandle(const Operation& operation, uint64_t highest);
uint64_t HighestProgram(const Operation& operation, uint64_t highest);

struct Answer {
  uint64_t sequence = 0;
  absl::Status error{};
  // Of a Read: what is read. It never changes, so that its bytes need not be kept until they are
  // sent, and sent again.
  runtime::ValuePointer value{};
  std::string digest{};
  double device_seconds = 0;
  memory::Charge charge{};
};
// Bytes of host memory that an answer holds.
int64_t SizeOf(const Answer& answer);

// Where a session's answers go: one attached stream. Thread-safe.
class Sink {
 public:
  virtual ~Sink() = default;
  // Both only put the message into the stream's queue, so that they may be called with locks held;
  // Flush sends.
  virtual void PushAttached(uint64_t last_sequence) = 0;
  virtual void Push(std::shared_ptr<const Answer> answer) = 0;
  // The rest is called without locks.
  virtual void Flush() = 0;
  // The session takes operations again after it had refused more.
  virtual void ReadMore() = 0;
  // Sends what is queued, then ends the stream.
  virtual void Close(const absl::Status& status) = 0;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATION_H_
