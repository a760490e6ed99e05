// A checkpoint: the state of a session between two operations, in a form that outlives the daemon.
//
// Some of the operations up to `executed` have been answered; the others are `pending` and are
// executed again. Later operations count as never received: the client still has them and sends
// them again. So each operation takes effect once, whenever the daemon stops.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_CHECKPOINT_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_CHECKPOINT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/buffers/blob_store.h"
#include "server/buffers/value.h"
#include "server/sessions/checkpoint/copy_deadline.h"
#include "server/sessions/id_set.h"
#include "server/sessions/identity.h"
#include "server/sessions/operations/operation.h"

namespace kiln::sessions {

// The destination and the source of the bytes of values and blobs, in order. Not thread-safe.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual absl::Status Write(absl::string_view bytes) = 0;
};
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual absl::Status Read(absl::Span<char> bytes) = 0;
};

// Values are copied from and to their devices in pieces of this size.
inline constexpr int64_t kValuePieceBytes = int64_t{1} << 20;

struct Checkpoint {
  struct Value {
    enum class Kind { kBytes, kFailed, kPending };  // kPending: a pending operation makes it
    Kind kind = Kind::kPending;
    buffers::TensorType type{};      // of kBytes
    absl::Status error{};            // of kFailed
    RequestedPlacement placement{};  // of kBytes; without a device: the session's own device
    // The value with the bytes, in the daemon that has them; not encoded.
    runtime::ValuePointer value{};
  };
  // The types below refer to values and origins by their numbers.
  struct Program {
    uint64_t number = 0;
    absl::Status error{};  // of a refused graph; there is no origin then
    size_t origin = 0;
  };
  struct SavedAnswer {
    uint64_t sequence = 0;
    absl::Status error{};
    std::optional<size_t> value{};
    std::string digest{};
    double device_seconds = 0;
  };
  struct Blob {
    std::string name;
    int64_t size = 0;
    buffers::BlobStore::Blob data{};  // not encoded
  };

  SessionIdentity identity;
  uint64_t generation = 0;
  std::optional<Park> parked;
  std::string user;
  std::string device;
  absl::Duration remaining;  // of the lease
  uint64_t executed = 0;
  int64_t runs = 0;
  double device_seconds = 0;
  std::vector<std::shared_ptr<const ProgramOrigin>> origins;
  std::vector<Value> values;
  std::vector<SavedPending> pending;  // in the order of their sequence numbers
  std::vector<SavedAnswer> answers;
  IdSet used_handles;
  std::vector<std::pair<uint64_t, size_t>> handles;  // with their values
  IdSet used_programs;
  std::vector<Program> programs;
  std::vector<Blob> blobs;
  std::vector<ReceivedCancel> cancelled;  // in the order of their Cancels
  // The number of the first segment of the log (log.h) with records made after this checkpoint; 0:
  // there is no log.
  uint64_t log = 0;
  // The session continued after this checkpoint was taken, so the segment must exist.
  bool is_live = false;

  // The bytes of values and blobs.
  int64_t data_bytes() const;
  // The devices that the session needs, without duplicates; its own device is the first.
  std::vector<std::string> DeviceNames() const;
  // The device memory that its values take on `device`.
  int64_t bytes_on(const std::string& device) const;
  // The lease from the start of the next daemon on. It starts anew, because the client could not
  // renew it.
  absl::Duration lease_then() const { return std::max(remaining, identity.lease); }
  // The references between its tables are right, so that Decode accepts it.
  void Validate() const;
};

// Encodes everything except the bytes of values and blobs.
std::string Encode(const Checkpoint& checkpoint);
// DATA_LOSS if `bytes` are not a valid checkpoint. `bytes` are untrusted; a returned checkpoint is
// consistent: numbers are within their tables, and each result of a pending run is made by no other
// run.
absl::StatusOr<Checkpoint> Decode(absl::string_view bytes, uint32_t version = kCheckpointVersion);

// Marks pending runs that were cancelled after the checkpoint was taken: they are answered with
// CANCELLED, and the handles that they would have updated keep their values.
void CancelPending(const absl::flat_hash_set<uint64_t>& runs, Checkpoint* checkpoint);

// Writes the bytes of the values, then those of the blobs.
absl::Status WriteBytes(const Checkpoint& checkpoint, CopyDeadline& deadline, ByteSink& sink);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_CHECKPOINT_H_
