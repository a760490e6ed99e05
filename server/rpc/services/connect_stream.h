// The stream of operations: a gRPC reactor that reads operations into a session and writes the
// session's answers.
#ifndef KILN_SERVER_RPC_SERVICES_CONNECT_STREAM_H_
#define KILN_SERVER_RPC_SERVICES_CONNECT_STREAM_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "kiln/v1/session.pb.h"
#include "server/rpc/services/services.h"
#include "server/sessions/operations/operation.h"
#include "server/sessions/session.h"

namespace kiln::rpc {

// Owned by gRPC from Start until OnDone, and by the session while attached. At most one read and
// one write are under way. gRPC's Start… and Finish are called without the lock, each by the one
// thread that has set reading_, writing_ or finished_.
class ConnectStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                      public sessions::Sink {
 public:
  // `caller`: the caller of Connect.
  static ConnectStream* Start(const SessionServiceParts& parts,
                              absl::StatusOr<auth::Principal> caller);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  void PushAttached(uint64_t last_sequence) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Push(std::shared_ptr<const sessions::Answer> answer) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Flush() override ABSL_LOCKS_EXCLUDED(mutex_);
  void ReadMore() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Outgoing = std::variant<uint64_t, std::shared_ptr<const sessions::Answer>>;

  ConnectStream(const SessionServiceParts& parts, absl::StatusOr<auth::Principal> caller)
      : parts_(parts), caller_(std::move(caller)), call_(parts.open_calls) {}

  // The bytes are those of the queued answers, and a finished stream does nothing more.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status Handle();
  void HoldBack(bool holds) ABSL_LOCKS_EXCLUDED(mutex_);
  // Parses the message in request_bytes_, unless it contains too many operations.
  absl::Status Parse(v1::ConnectRequest* request);
  // Processes one operation of a message.
  absl::Status Accept(v1::ConnectRequest& request, bool travels_alone);
  absl::Status Attach(const v1::ConnectRequest& request);
  // Bytes of unread answers above which the client is not read.
  int64_t UnsentBytesMax() const;
  // The content of the next message: one element of outgoing_, or several small answers, of which
  // only the first may have a value. Requires: outgoing_ is not empty.
  std::vector<Outgoing> TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends a message after writing_ was set. `more`: another message follows at once.
  void Write(const std::vector<Outgoing>& next, bool more);
  // Copies the value's bytes into `response`, which is otherwise complete, and sends it. The bytes
  // are charged until the message has been written.
  void CopyAndSend(const runtime::ValuePointer& value,
                   std::shared_ptr<v1::ConnectResponse> response, bool more);
  // `copied`: the result of copying the bytes.
  void Copied(const absl::Status& copied, v1::ConnectResponse& response, bool more);
  void Send(const v1::ConnectResponse& response, bool more);

  const SessionServiceParts& parts_;
  const absl::StatusOr<auth::Principal> caller_;
  const OpenCalls::Call call_;
  std::shared_ptr<ConnectStream> self_;
  grpc::ByteBuffer request_bytes_;              // used by the reading thread
  absl::Time received_;                         // used by the reading thread: steady time of
                                                // arrival
  grpc::ByteBuffer response_bytes_;             // used by the writing thread
  memory::Charge transfer_;                     // for a value in it; used by the writing thread
  memory::Charge charge_;                       // for the stream
  std::shared_ptr<sessions::Session> session_;  // set by the first read
  bool takes_more_ = false;                     // set by the first read

  mutable absl::Mutex mutex_;
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mutex_);
  int64_t unsent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the answers in outgoing_
  // The client has too many unread answers, so it is not read.
  bool stalled_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool restarting_ ABSL_GUARDED_BY(mutex_) =
      false;  // ReadMore is inside StartRead: the call must not end meanwhile
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool holds_back_ ABSL_GUARDED_BY(mutex_) = false;  // while a message is executed
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // no more writes are possible
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_CONNECT_STREAM_H_
