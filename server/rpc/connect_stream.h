// The stream of operations: one gRPC reactor that reads operations into a session and writes its
// answers.
#ifndef KILN_SERVER_RPC_CONNECT_STREAM_H_
#define KILN_SERVER_RPC_CONNECT_STREAM_H_

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
#include "server/rpc/services.h"
#include "server/sessions/operation.h"
#include "server/sessions/session.h"

namespace kiln::rpc {

// gRPC owns it from Start until OnDone, the session while it is attached. At most one read and one
// write are under way; gRPC's Start… and Finish are called without the lock, each by the one thread
// that has set reading_, writing_ or finished_.
class ConnectStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                      public sessions::Sink {
 public:
  // `caller`: who has called Connect.
  static ConnectStream* Start(const DaemonView& daemon, absl::StatusOr<auth::Principal> caller);

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

  ConnectStream(const DaemonView& daemon, absl::StatusOr<auth::Principal> caller)
      : daemon_(daemon), caller_(std::move(caller)), call_(daemon.open_calls) {}

  absl::Status Handle();
  void HoldBack(bool holds) ABSL_LOCKS_EXCLUDED(mutex_);
  // The message in request_bytes_, unless it carries too many operations.
  absl::Status Parse(v1::ConnectRequest* request);
  // One operation of a message.
  absl::Status Accept(v1::ConnectRequest& request, bool travels_alone);
  absl::Status Attach(const v1::ConnectRequest& request);
  // Bytes of answers beyond which the client is not read.
  int64_t MostUnsent() const;
  // What the next message says: one of outgoing_, or several answers that are small, of which the
  // first alone may have a value.
  std::vector<Outgoing> TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends what writing_ was set for. `more`: another message follows at once.
  void Write(const std::vector<Outgoing>& next, bool more);
  // The same when `response` has all but the value's bytes, which it gets first; they are charged
  // until the message has been written.
  void CopyAndSend(const runtime::ValuePointer& value,
                   std::shared_ptr<v1::ConnectResponse> response, bool more);
  // `copied`: how getting the bytes went.
  void Copied(const absl::Status& copied, v1::ConnectResponse& response, bool more);
  void Send(const v1::ConnectResponse& response, bool more);

  const DaemonView& daemon_;
  const absl::StatusOr<auth::Principal> caller_;
  const OpenCalls::Call call_;
  std::shared_ptr<ConnectStream> self_;
  grpc::ByteBuffer request_bytes_;              // of the reading thread
  absl::Time received_;                         // likewise: when that came, by the steady clock
  grpc::ByteBuffer response_bytes_;             // of the writing thread
  memory::Charge transfer_;                     // for a value in it; also the writing thread's
  memory::Charge charge_;                       // for the stream
  std::shared_ptr<sessions::Session> session_;  // set by the first read
  bool takes_more_ = false;                     // likewise

  absl::Mutex mutex_;
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mutex_);
  int64_t unsent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the answers in outgoing_
  // The client takes too few answers, so it is not read.
  bool stalled_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool restarting_ ABSL_GUARDED_BY(mutex_) =
      false;  // ReadMore is inside StartRead: the call must not end meanwhile
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool holds_back_ ABSL_GUARDED_BY(mutex_) = false;  // answers, as long as a message is executed
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // nothing can be written any more
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECT_STREAM_H_
