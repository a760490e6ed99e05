// A session as it is between two operations, in a form that outlives the daemon.
//
// Of the operations up to `executed` some have been answered, the others are `pending` and are done
// again. Later ones count as never received: the client has them still and sends them again. So
// each takes effect once, whenever the daemon stops.
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
#include "server/runtime/run.h"
#include "server/sessions/id_set.h"
#include "server/sessions/in_flight.h"
#include "server/sessions/operation.h"
#include "server/sessions/patience.h"

namespace kiln::sessions {

// Who the client says it is.
struct ClientInfo {
  std::string name;
  std::string version;
  std::string description;
  uint32_t op_set_version = 0;
  bool is_local = false;  // on this machine: a connection that is lost is a process that has ended
};

struct SessionIdentity {
  int64_t number = 0;
  std::string id;    // secret
  std::string name;  // "s3"
  ClientInfo client;
  absl::Duration lease;
  // After a lost connection, where that is less.
  absl::Duration away_lease = absl::InfiniteDuration();
  fairness::Priority priority = fairness::Priority::kInteractive;
  absl::Time opened;
  // How often an image of it is taken while it goes on, so that it survives a daemon that is
  // killed; zero: never.
  absl::Duration snapshot_interval;
};

// Where the bytes of values and blobs go to or come from, in order. For one thread at a time.
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

// Pending operations of a SessionImage, which name values and origins by their places in it.
struct KeptRun {
  size_t origin = 0;
  runtime::Bindings bindings;
  std::vector<size_t> inputs;
  std::vector<size_t> results;
  bool report_time = false;
  // The handles that the last of the results are bound to, and what they named before it, should it
  // be cancelled; empty for a run that cannot be.
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

struct SessionImage {
  struct Value {
    enum class Kind { kBytes, kFailed, kPending };  // kPending: a pending operation makes it
    Kind kind = Kind::kPending;
    buffers::TensorType type{};  // of kBytes
    absl::Status error{};        // of kFailed
    Place place{};               // of kBytes; without a device: the session's
    // Where the bytes are, in the daemon that has them; not encoded.
    runtime::ValuePointer value{};
  };
  // What follows names values and origins by their places.
  struct Program {
    uint64_t number = 0;
    absl::Status error{};  // of a graph that was refused; then there is no origin
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

  // A Cancel that had been received and not executed: whatever it names stays cancelled when the
  // client sends it again.
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
  // The number of the first segment of the journal (journal.h) with what came after this image; 0:
  // there is no journal.
  uint64_t journal = 0;
  // The session went on when this image had been taken: the segment is there.
  bool is_live = false;

  // Of values and blobs.
  int64_t data_bytes() const;
  // All that it needs, each once; the session's own is the first.
  std::vector<std::string> DeviceNames() const;
  // Memory that its values take there.
  int64_t bytes_on(const std::string& device) const;
  // From the next daemon's start on: a lease begins anew, for the client could not renew it.
  absl::Duration lease_then() const { return std::max(remaining, identity.lease); }
};

// Of what Encode writes; Decode knows all earlier ones, too.
inline constexpr uint32_t kImageVersion = 4;

// Everything but the bytes of values and blobs.
std::string Encode(const SessionImage& image);
// DATA_LOSS if it is none: whatever the bytes are, an image that is returned is consistent. Places
// lie within their tables, and a pending run's results are made by no other.
absl::StatusOr<SessionImage> Decode(absl::string_view bytes, uint32_t version = kImageVersion);

// These runs of its pending ones were cancelled after it had been taken: they are answered with
// CANCELLED, and what they would have updated keeps its values.
void CancelPending(const absl::flat_hash_set<uint64_t>& runs, SessionImage* image);

// The bytes of the values, then those of the blobs.
absl::Status WriteBytes(const SessionImage& image, Patience& patience, ByteSink& sink);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_IMAGE_H_
