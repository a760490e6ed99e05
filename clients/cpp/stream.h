// The ordered stream of operations of one session, which survives lost connections.
#ifndef KILN_CLIENTS_CPP_STREAM_H_
#define KILN_CLIENTS_CPP_STREAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kiln/v1/session.grpc.pb.h"

namespace kiln::client {

// Numbers operations, starting after `last_sequence`, and sends them in order; one thread reads the
// answers and calls the callbacks. While few operations are in flight, the caller of Send writes
// its operation at once. Beyond that another thread writes, and the operations that have
// accumulated share a message. After a lost connection it attaches again and sends what the daemon
// has not received, until `patience` has passed without success; then everything fails with
// UNAVAILABLE. Thread-safe.
class OperationStream {
 public:
  // Called once, from the reading thread or from Send; must not block. For an operation that
  // failed, gets its status.
  using Callback = std::function<void(absl::StatusOr<v1::Result>)>;

  OperationStream(v1::SessionService::StubInterface& stub, std::string session_id,
                  std::string address, absl::Duration patience, uint64_t last_sequence = 0);
  // Pending operations fail with CANCELLED.
  ~OperationStream();

  // Sends an operation, sets its number and returns that number. Blocks while 4,096 operations or
  // 256 MiB are unanswered, unless it is called from a callback.
  uint64_t Send(v1::ConnectRequest request, const Callback& callback);

  // The number of the last operation sent.
  uint64_t last_sequence();

  // Runs a transfer that does not use the stream. Repeats it after a lost connection for as long as
  // the session lives; then fails with the stream's error.
  absl::Status ThroughCuts(const std::function<absl::Status()>& transfer);

 private:
  using Stream = grpc::ClientReaderWriterInterface<v1::ConnectRequest, v1::ConnectResponse>;
  using Request = std::shared_ptr<const v1::ConnectRequest>;
  struct Pending {
    Request request;
    size_t bytes = 0;
    Callback callback;
  };

  void ReadLoop();
  void WriteLoop();
  // Takes the operations of the next message: none if all are sent, or none can be sent.
  std::vector<Request> TakeUnsent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends one message. Requires: the calling thread has set writing_.
  void WriteOne() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the turn of the thread that has set writing_; the writing thread's turn begins if anything
  // is left.
  void PassOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Opens a stream, attaches, and sends the missing operations again.
  absl::Status Attach();
  // Delivers answers until the stream breaks; returns the reason.
  absl::Status ReadAnswers();
  void Deliver(v1::Result result);
  void FailAll(const absl::Status& status);
  // All operations up to the returned number have been answered.
  uint64_t Acknowledged() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool stopping();

  v1::SessionService::StubInterface& stub_;
  const std::string session_id_;
  const std::string address_;
  const absl::Duration patience_;

  // Never held while a message is written, which blocks when the daemon is slow: answers must keep
  // flowing.
  absl::Mutex mutex_;
  bool live_ ABSL_GUARDED_BY(mutex_) = false;          // attached, and not known to be broken
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;       // a thread's turn to write
  bool wakes_writer_ ABSL_GUARDED_BY(mutex_) = false;  // it is the writing thread's turn
  int operations_max_ ABSL_GUARDED_BY(mutex_) = 1;     // in a message
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;          // on this stream, or received before it
  size_t pending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);  // set once, permanently
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);

  // Replaced by the reading thread while !live_ and !writing_; written to by the thread that has
  // set writing_.
  std::unique_ptr<Stream> stream_;
  std::thread writer_;
  std::thread reader_;
};

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_STREAM_H_
