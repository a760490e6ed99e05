// The state of a session between two operations, in a form that outlives the daemon.
//
// Some of the operations up to `executed` have been answered; the others are `pending` and are
// executed again. Later operations count as never received: the client still has them and sends
// them again. So each operation takes effect once, whenever the daemon stops.
#ifndef KILN_SERVER_SESSIONS_IMAGE_H_
#define KILN_SERVER_SESSIONS_IMAGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/buffers/blob_store.h"
#include "server/buffers/value.h"
#include "server/fairness/fair_queue.h"
#include "server/runtime/run/run.h"
#include "server/sessions/id_set.h"
#include "server/sessions/in_flight.h"
#include "server/sessions/operation.h"
#include "server/sessions/patience.h"

namespace kiln::sessions {

// The client's own description of itself.
struct ClientInfo {
  std::string name;
  std::string version;
  std::string description;
  uint32_t op_set_version = 0;
  bool is_local = false;  // on this machine: a lost connection means that the process has ended
};

struct SessionIdentity {
  int64_t number = 0;
  std::string id;    // secret
  std::string name;  // "s3"
  ClientInfo client;
  absl::Duration lease;
  // The lease after a lost connection, if shorter than `lease`.
  absl::Duration away_lease = absl::InfiniteDuration();
  fairness::Priority priority = fairness::Priority::kInteractive;
  absl::Time opened;
  // The interval at which images of the running session are taken, so that it survives SIGKILL of
  // the daemon; zero: never.
  absl::Duration snapshot_interval;
};

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

// Pending operations of a SessionImage. They refer to values and origins by index.
struct KeptRun {
  size_t origin = 0;
  runtime::Bindings bindings;
  std::vector<size_t> inputs;
  std::vector<size_t> results;
  bool report_time = false;
  // The updated handles, one for each of the last `results`, and the values to restore if the run
  // is cancelled. Empty if the run cannot be cancelled.
  struct Update {
    uint64_t handle = 0;
    size_t before = 0;
  };
  std::vector<Update> updates{};
};
struct KeptDefinition {
  size_t origin = 0;
};
struct KeptRead {
  size_t value = 0;
};
struct KeptBarrier {};
struct KeptMove {
  size_t source = 0;
  size_t target = 0;
  Place place{};
};

// Values are copied from and to their devices in pieces of this size.
inline constexpr int64_t kValuePieceBytes = int64_t{1} << 20;

struct SessionImage {
  struct Value {
    enum class Kind { kBytes, kFailed, kPending };  // kPending: a pending operation makes it
    Kind kind = Kind::kPending;
    buffers::TensorType type{};  // of kBytes
    absl::Status error{};        // of kFailed
    Place place{};               // of kBytes; without a device: the session's own device
    // The value with the bytes, in the daemon that has them; not encoded.
    runtime::ValuePointer value{};
  };
  // The types below refer to values and origins by index.
  struct Program {
    uint64_t number = 0;
    absl::Status error{};  // of a refused graph; there is no origin then
    size_t origin = 0;
  };
  using Run = KeptRun;
  using Definition = KeptDefinition;
  using Read = KeptRead;
  using Barrier = KeptBarrier;
  using Move = KeptMove;
  struct Pending {
    uint64_t sequence = 0;
    std::variant<Run, Definition, Read, Barrier, Move> operation;
  };
  struct KeptAnswer {
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

  // A Cancel that has been received and not executed: the runs that it names remain cancelled when
  // the client sends them again.
  struct Cancelled {
    uint64_t first = 0;
    uint64_t cancel = 0;  // the number of the Cancel
  };

  struct Detached {
    std::string name;
    absl::Duration keep;
    std::vector<NamedHandle> tensors;
  };

  SessionIdentity identity;
  uint64_t generation = 0;
  std::optional<Detached> detached;
  std::string user;
  std::string device;
  absl::Duration remaining;  // of the lease
  uint64_t executed = 0;
  int64_t runs = 0;
  double device_seconds = 0;
  std::vector<std::shared_ptr<const ProgramOrigin>> origins;
  std::vector<Value> values;
  std::vector<Pending> pending;  // in the order of their sequence numbers
  std::vector<KeptAnswer> answers;
  IdSet used_handles;
  std::vector<std::pair<uint64_t, size_t>> handles;  // with their values
  IdSet used_programs;
  std::vector<Program> programs;
  std::vector<Blob> blobs;
  std::vector<Cancelled> cancelled;  // in the order of their Cancels
  // The number of the first journal segment (journal.h) with records made after this image; 0:
  // there is no journal.
  uint64_t journal = 0;
  // The session continued after this image was taken, so the segment must exist.
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
};

// The version that Encode writes. Decode reads all earlier versions, too.
inline constexpr uint32_t kImageVersion = 4;

// Encodes everything except the bytes of values and blobs.
std::string Encode(const SessionImage& image);
// DATA_LOSS if `bytes` are not a valid image. `bytes` are untrusted; a returned image is
// consistent: indices are within their tables, and each result of a pending run is made by no other
// run.
absl::StatusOr<SessionImage> Decode(absl::string_view bytes, uint32_t version = kImageVersion);

// Marks pending runs that were cancelled after the image was taken: they are answered with
// CANCELLED, and the handles that they would have updated keep their values.
void CancelPending(const absl::flat_hash_set<uint64_t>& runs, SessionImage* image);

// Writes the bytes of the values, then those of the blobs.
absl::Status WriteBytes(const SessionImage& image, Patience& patience, ByteSink& sink);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_IMAGE_H_
