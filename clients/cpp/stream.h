// The ordered stream of operations of one session, which survives lost connections.
#ifndef KILN_CLIENTS_CPP_STREAM_H_
#define KILN_CLIENTS_CPP_STREAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kiln/v1/session.grpc.pb.h"

namespace kiln::client {

// Numbers operations, from the one behind `last_sequence` on, and sends them in order; one thread
// reads the answers and calls back. When the connection is lost it attaches again and sends what
// the daemon has not received, until `patience` has passed without success; then everything fails
// with UNAVAILABLE. Thread-safe.
class OperationStream {
 public:
  // Called once, from the reading thread or from Send; must not block. An operation that failed
  // comes as its status.
  using Callback = std::function<void(absl::StatusOr<v1::Result>)>;

  OperationStream(v1::SessionService::StubInterface& stub, std::string session_id,
                  std::string address, absl::Duration patience, uint64_t last_sequence = 0);
  // Open operations fail with CANCELLED.
  ~OperationStream();

  // Sends an operation; its number is filled in. Returns that number.
  uint64_t Send(v1::ConnectRequest request, const Callback& callback);

  // The number of the last operation sent.
  uint64_t last_sequence();

  // Runs a transfer that does not travel on the stream. One that a lost connection has ended is
  // repeated for as long as the session lives; then it fails with the stream's error.
  absl::Status ThroughCuts(const std::function<absl::Status()>& transfer);

 private:
  using Stream = grpc::ClientReaderWriterInterface<v1::ConnectRequest, v1::ConnectResponse>;
  struct Pending {
    std::shared_ptr<v1::ConnectRequest> request;
    Callback callback;
  };

  void ReadLoop();
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

  // Order of locking: write_mutex_, then mutex_. write_mutex_ is held while a message is written,
  // which blocks when the daemon does not keep up; the reading thread takes it only while no stream
  // is live, so answers always flow.
  absl::Mutex write_mutex_;
  bool live_ ABSL_GUARDED_BY(write_mutex_) = false;

  absl::Mutex mutex_;
  std::map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);  // set for good
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);

  // Replaced by the reading thread while !live_; written to by whoever holds write_mutex_ while
  // live_.
  std::unique_ptr<Stream> stream_;
  std::thread reader_;
};

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_STREAM_H_
