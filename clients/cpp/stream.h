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

// Numbers operations, from the one behind `last_sequence` on, and sends them in order; one thread
// reads the answers and calls back. While few are on their way the caller of Send writes its
// operation at once; beyond that another thread does, and what has come meanwhile shares a message.
// When the connection is lost it attaches again and sends what the daemon has not received, until
// `patience` has passed without success; then everything fails with UNAVAILABLE. Thread-safe.
class OperationStream {
 public:
  // Called once, from the reading thread or from Send; must not block. An operation that failed
  // comes as its status.
  using Callback = std::function<void(absl::StatusOr<v1::Result>)>;

  OperationStream(v1::SessionService::StubInterface& stub, std::string session_id,
                  std::string address, absl::Duration patience, uint64_t last_sequence = 0);
  // Open operations fail with CANCELLED.
  ~OperationStream();

  // Sends an operation; its number is filled in. Returns that number. Blocks while the daemon is
  // 4,096 operations or 256 MiB behind, unless a callback calls it.
  uint64_t Send(v1::ConnectRequest request, const Callback& callback);

  // The number of the last operation sent.
  uint64_t last_sequence();

  // Runs a transfer that does not travel on the stream. One that a lost connection has ended is
  // repeated for as long as the session lives; then it fails with the stream's error.
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
  // What the next message carries: nothing if all is sent, or cannot be.
  std::vector<Request> TakeUnsent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends one message; by whoever has set writing_.
  void WriteOne() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the turn of whoever has set writing_: the writing thread's begins if anything is left.
  void PassOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Opens a stream, attaches, sends again what is missing.
  absl::Status Attach();
  // Delivers answers until the stream breaks; says why it did.
  absl::Status ReadAnswers();
  void Deliver(v1::Result result);
  void FailAll(const absl::Status& status);
  // All up to this one have been answered.
  uint64_t Acknowledged() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool stopping();

  v1::SessionService::StubInterface& stub_;
  const std::string session_id_;
  const std::string address_;
  const absl::Duration patience_;

  // Never held while a message is written, which blocks when the daemon does not keep up: answers
  // always flow.
  absl::Mutex mutex_;
  bool live_ ABSL_GUARDED_BY(mutex_) = false;          // attached, and not known to be broken
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;       // somebody's turn to write
  bool wakes_writer_ ABSL_GUARDED_BY(mutex_) = false;  // it is the writing thread's
  int most_operations_ ABSL_GUARDED_BY(mutex_) = 1;    // in a message
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;          // on this stream, or received before it
  size_t pending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);  // set for good
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);

  // Replaced by the reading thread while !live_ and !writing_; written to by whoever has set
  // writing_.
  std::unique_ptr<Stream> stream_;
  std::thread writer_;
  std::thread reader_;
};

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_STREAM_H_
