// Uploads that do not send what the daemon has already.
#ifndef KILN_CLIENTS_CPP_PIECES_H_
#define KILN_CLIENTS_CPP_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "clients/cpp/blobs.h"
#include "clients/cpp/stream.h"

namespace kiln::client {

// What the names of blobs with the sum of these bytes begin with (see UploadHeader.blob).
std::string SumName(absl::Span<const char> data);

// One upload of content-addressed pieces, named on the caller's thread and sent on others
// meanwhile. Hashed is what has the sum of something that the daemon has; an older daemon knows no
// sums. A piece is what is sent anew after a lost connection.
class PieceUpload {
 public:
  static constexpr size_t kPieceBytes = 4 << 20;

  // Both must outlive this. With `prefix` begin names that no other upload of the session has.
  PieceUpload(const Blobs& blobs, OperationStream& stream, std::string prefix)
      : blobs_(blobs), stream_(stream), prefix_(std::move(prefix)) {}

  // The names of the pieces, in order, once the daemon has all of them and holds them for this
  // session. It holds what it had until an operation that is sent later has used it, so from here
  // to that operation no other upload of the session may begin. Called once.
  absl::StatusOr<std::vector<std::string>> Send(absl::Span<const char> data);
  // After Send: all that the daemon may have and hold for this session.
  const std::set<std::string>& offered() const { return offered_; }

 private:
  struct Piece {
    std::string name;
    absl::Span<const char> data;
  };
  using Spans = std::vector<absl::Span<const char>>;
  // Asks the daemon for their sums, unless it knows none.
  absl::StatusOr<std::vector<std::string>> Names(absl::Span<const absl::Span<const char>> pieces);
  std::string Name(const std::string& sum, absl::Span<const char> data);
  absl::StatusOr<Blobs::Found> Find(const std::vector<std::string>& names);
  // Leaves those that the daemon lacks to the sending threads.
  absl::Status Offer(const std::vector<std::string>& names,
                     absl::Span<const absl::Span<const char>> pieces) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendSome() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Blobs& blobs_;
  OperationStream& stream_;
  const std::string prefix_;
  // The caller's thread's.
  std::set<std::string> offered_;
  bool knows_sums_ = true;  // the daemon, as long as it has not shown otherwise
  struct Sum {
    bool may_be_there = false;
    Piece last = {};  // of this upload
  };
  std::map<std::string, Sum> sums_;
  int64_t named_ = 0;
  // All threads'.
  absl::Mutex mutex_;
  std::deque<Piece> to_send_ ABSL_GUARDED_BY(mutex_);
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more is offered
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);   // the first
};

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_PIECES_H_
