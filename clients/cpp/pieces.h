// Uploads that do not send what the daemon has already.
#ifndef KILN_CLIENTS_CPP_PIECES_H_
#define KILN_CLIENTS_CPP_PIECES_H_

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "clients/cpp/blobs.h"
#include "clients/cpp/stream.h"

namespace kiln::client {

// One upload of content-addressed pieces ("sha256:" and the digest), hashed on the caller's thread
// and sent on others meanwhile. A piece is what is sent anew after a lost connection.
class PieceUpload {
 public:
  static constexpr size_t kPieceBytes = 4 << 20;

  // Both must outlive this.
  PieceUpload(const Blobs& blobs, OperationStream& stream) : blobs_(blobs), stream_(stream) {}

  // The names of the pieces, in order, once the daemon has all of them and holds them for this
  // session. It holds what it had until an operation that is sent later has used it, so from here
  // to that operation no other upload of the session may begin. Called once.
  absl::StatusOr<std::vector<std::string>> Send(absl::Span<const char> data);

 private:
  struct Piece {
    std::string name;
    absl::Span<const char> data;
  };
  // Leaves those that the daemon lacks to the sending threads.
  absl::Status Offer(std::vector<Piece> pieces) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendSome() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Blobs& blobs_;
  OperationStream& stream_;
  std::set<std::string> offered_;  // the caller's thread's
  absl::Mutex mutex_;
  std::deque<Piece> to_send_ ABSL_GUARDED_BY(mutex_);
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more is offered
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);   // the first
};

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_PIECES_H_
