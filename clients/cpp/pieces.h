// Uploads that skip data that the daemon already has.
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

// Returns the prefix of the names of blobs whose bytes have the sum of `data` (see
// UploadHeader.blob).
std::string SumName(absl::Span<const char> data);

// One upload of content-addressed pieces. The caller's thread names the pieces while other threads
// send them. A piece is hashed only if the daemon has something with its sum, or is an older daemon
// that does not know sums. After a lost connection a whole piece is sent again.
class PieceUpload {
 public:
  static constexpr size_t kPieceBytes = 4 << 20;

  // Both must outlive this object. No other upload of the session may use names that begin with
  // `prefix`.
  PieceUpload(const Blobs& blobs, OperationStream& stream, std::string prefix)
      : blobs_(blobs), stream_(stream), prefix_(std::move(prefix)) {}

  // Returns the names of the pieces, in order, once the daemon has all of them and keeps them for
  // this session. It keeps those that it already had only until an operation that is sent later has
  // used them, so no other upload of the session may begin before that operation. Called once.
  absl::StatusOr<std::vector<std::string>> Send(absl::Span<const char> data);
  // After Send: all pieces that the daemon may have and keep for this session.
  const std::set<std::string>& offered() const { return offered_; }

 private:
  struct Piece {
    std::string name;
    absl::Span<const char> data;
  };
  using Spans = std::vector<absl::Span<const char>>;
  // Asks the daemon for their sums, unless it does not know sums.
  absl::StatusOr<std::vector<std::string>> Names(absl::Span<const absl::Span<const char>> pieces);
  std::string Name(const std::string& sum, absl::Span<const char> data);
  absl::StatusOr<Blobs::Found> Find(const std::vector<std::string>& names);
  // Hands those that the daemon lacks to the sending threads.
  absl::Status Offer(const std::vector<std::string>& names,
                     absl::Span<const absl::Span<const char>> pieces) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendSome() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Blobs& blobs_;
  OperationStream& stream_;
  const std::string prefix_;
  // Used by the caller's thread only.
  std::set<std::string> offered_;
  bool knows_sums_ = true;  // false once the daemon has shown that it does not
  struct Sum {
    bool may_be_there = false;
    Piece last = {};  // of this upload
  };
  std::map<std::string, Sum> sums_;
  int64_t named_ = 0;
  // Shared by all threads.
  absl::Mutex mutex_;
  std::deque<Piece> to_send_ ABSL_GUARDED_BY(mutex_);
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more is offered
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);   // the first
};

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_PIECES_H_
