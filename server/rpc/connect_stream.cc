#include "server/rpc/connect_stream.h"

#include <utility>

#include "server/errors/errors.h"
#include "server/rpc/graph_source.h"
#include "server/rpc/message.h"
#include "server/rpc/operation.h"
#include "server/rpc/status.h"

namespace kiln::rpc {
namespace {

void FillResult(const sessions::Answer& answer, v1::Result* result) {
  result->set_sequence(answer.sequence);
  if (!answer.error.ok()) *result->mutable_error() = ToProto(answer.error);
  if (!answer.data.empty()) result->set_data(answer.data);
  if (!answer.digest.empty()) result->set_digest(answer.digest);
  if (answer.device_seconds > 0) result->set_device_seconds(answer.device_seconds);
}

}  // namespace

ConnectStream* ConnectStream::Start(const Backend& backend) {
  std::shared_ptr<ConnectStream> stream(new ConnectStream(backend));
  stream->self_ = stream;
  stream->StartRead(&stream->request_bytes_);
  return stream.get();
}

absl::Status ConnectStream::Attach() {
  if (!request_.has_attach()) {
    return errors::WithReason(
        absl::InvalidArgumentError("the first request on Connect must be attach"), "NOT_ATTACHED");
  }
  auto session = FindSession(backend_, request_.attach().session_id());
  if (!session.ok()) return session.status();
  session_ = std::move(*session);
  return session_->Attach(self_, request_.acknowledged());
}

absl::Status ConnectStream::Handle() {
  if (absl::Status status = Parse(request_bytes_, &request_); !status.ok()) return status;
  if (!session_) return Attach();
  if (request_.has_attach()) {
    return errors::WithReason(
        absl::InvalidArgumentError("attach must be the first request on Connect, and come once"),
        "ATTACHED_TWICE");
  }
  return session_->Accept(this, request_.sequence(), request_.acknowledged(),
                          ToOperation(request_));
}

void ConnectStream::OnReadDone(bool ok) {
  if (!ok) return session_ ? session_->EndAfterAnswers(this) : Close(absl::OkStatus());
  const absl::Status status = Handle();
  if (!status.ok()) return Close(status);
  {
    // Before asking: the session may take more, and say so, at any moment from then on.
    absl::MutexLock lock(&mutex_);
    reading_ = false;
  }
  if (session_->WantsMore()) ReadMore();
}

void ConnectStream::ReadMore() {
  {
    absl::MutexLock lock(&mutex_);
    if (reading_ || closing_) return;
    reading_ = restarting_ = true;
  }
  StartRead(&request_bytes_);
  {
    absl::MutexLock lock(&mutex_);
    restarting_ = false;
  }
  Flush();
}

void ConnectStream::PushAttached(uint64_t last_sequence) {
  absl::MutexLock lock(&mutex_);
  outgoing_.emplace_back(last_sequence);
}

void ConnectStream::Push(std::shared_ptr<const sessions::Answer> answer) {
  absl::MutexLock lock(&mutex_);
  outgoing_.emplace_back(std::move(answer));
}

void ConnectStream::Flush() {
  Outgoing next;
  bool finish = false;
  absl::Status end;
  bool more = false;
  {
    absl::MutexLock lock(&mutex_);
    if (writing_ || finished_) return;
    if (!outgoing_.empty() && !broken_) {
      next = std::move(outgoing_.front());
      outgoing_.pop_front();
      writing_ = true;
      more = !outgoing_.empty();
    } else if (closing_ && !restarting_) {
      finish = finished_ = true;
      end = end_;
    } else {
      return;
    }
  }
  if (finish) return Finish(End(backend_, end));
  response_.Clear();
  grpc::WriteOptions options;
  if (const auto* last_sequence = std::get_if<uint64_t>(&next)) {
    response_.mutable_attached()->set_last_sequence(*last_sequence);
  } else {
    FillResult(*std::get<std::shared_ptr<const sessions::Answer>>(next),
               response_.mutable_result());
    // With more to come, gRPC may send several messages in one write. Never with the first message:
    // gRPC would hold back the call's headers with it, and report neither as written.
    if (more) options.set_buffer_hint();
  }
  Serialize(response_, &response_bytes_);
  StartWrite(&response_bytes_, options);
}

void ConnectStream::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) broken_ = closing_ = true;
  }
  Flush();
}

void ConnectStream::Close(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!closing_) end_ = status;
    closing_ = true;
  }
  Flush();
}

void ConnectStream::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
  }
  Close(absl::CancelledError("the client went away"));
}

void ConnectStream::OnDone() {
  if (session_) session_->Detach(this);
  self_.reset();
}

}  // namespace kiln::rpc
