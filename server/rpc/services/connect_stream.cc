#include "server/rpc/services/connect_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/graph_source.h"
#include "server/rpc/messages/message.h"
#include "server/rpc/messages/operation.h"
#include "server/rpc/messages/parts.h"
#include "server/rpc/messages/status.h"

namespace kiln::rpc {
namespace {

constexpr int64_t kStreamBytes = 32 << 10;  // gRPC's memory for one stream
// If a client has more unread answers than this, its operations are not read.
constexpr int64_t kUnsentBytesMax = 4 << 20;
// The same for a client who has reached their memory limit: answers are charged anyway, and with
// many streams they would take memory that the user's other sessions need.
constexpr int64_t kUnsentBytesWithoutRoomMax = 256 << 10;
// Limits for one message. The bytes are of small answers, so that none waits long for others.
constexpr int kOperationsMax = 256;
constexpr size_t kAnswersMax = 256;
constexpr int64_t kAnswerBytesMax = 64 << 10;
// Larger values are copied on another thread.
constexpr int64_t kCopyAtOnce = 64 << 10;

void FillResult(const sessions::Answer& answer, v1::Result* result) {
  result->set_sequence(answer.sequence);
  if (!answer.error.ok()) *result->mutable_error() = ToProto(answer.error);
  if (!answer.digest.empty()) result->set_digest(answer.digest);
  if (answer.device_seconds > 0) result->set_device_seconds(answer.device_seconds);
}

// Null for a message that only acknowledges received operations.
const sessions::Answer* AnswerIn(
    const std::variant<uint64_t, std::shared_ptr<const sessions::Answer>>& outgoing) {
  const auto* answer = std::get_if<std::shared_ptr<const sessions::Answer>>(&outgoing);
  return answer != nullptr ? answer->get() : nullptr;
}

bool TakesTimeToCopy(const sessions::Answer* answer) {
  if (answer == nullptr || !answer->value) return false;
  return answer->value->bytes() > kCopyAtOnce || !buffers::IsAllHostMemory(*answer->value);
}

}  // namespace

ConnectStream* ConnectStream::Start(const SessionServiceParts& parts,
                                    absl::StatusOr<auth::Principal> caller) {
  std::shared_ptr<ConnectStream> stream(new ConnectStream(parts, std::move(caller)));
  // gRPC keeps a raw pointer, so the stream holds itself until OnDone.
  stream->self_ = stream;
  stream->StartRead(&stream->request_bytes_);
  return stream.get();
}

absl::Status ConnectStream::Attach(const v1::ConnectRequest& request) {
  KILN_CHECK(session_ == nullptr);
  if (!request.has_attach() || request.more_size() > 0) {
    return errors::WithReason(
        absl::InvalidArgumentError(
            "the first request on Connect must be `attach` without other operations"),
        "NOT_ATTACHED");
  }
  auto session = FindSession(parts_, caller_, request.attach().session_id());
  if (!session.ok()) return session.status();
  charge_ = (*session)->host()->Open(memory::Use::kSessions);
  if ((*session)->GetStats().connected) {
    if (absl::Status status = charge_.Resize(kStreamBytes); !status.ok()) return status;
  } else {
    // Without its only stream the session would be lost, for example after a limit was lowered.
    charge_.ForceResize(kStreamBytes);
  }
  // Before Connect, which starts the first write: other threads read session_ from then on.
  session_ = std::move(*session);
  takes_more_ = request.attach().takes_more();
  return session_->Connect(self_, request.acknowledged(),
                           sessions::Split(request.attach().session_id()).generation);
}

absl::Status ConnectStream::Parse(v1::ConnectRequest* request) {
  const auto more =
      CountFlat(request_bytes_, v1::ConnectRequest::kMoreFieldNumber, request->GetTypeName());
  if (!more.ok()) return more.status();
  if (*more >= kOperationsMax) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("a message carries ", *more + 1,
                                                " operations, more than ", kOperationsMax)),
        "TOO_MANY_OPERATIONS");
  }
  if (absl::Status status = CheckParts(request_bytes_, *request->GetDescriptor()); !status.ok())
    return status;
  return rpc::Parse(request_bytes_, request);
}

absl::Status ConnectStream::Handle() {
  v1::ConnectRequest request;  // its memory is freed before the next message arrives
  received_ = parts_.clock.steady();
  if (absl::Status status = Parse(&request); !status.ok()) return status;
  if (!session_) return Attach(request);
  if (request.has_attach()) {
    return errors::WithReason(
        absl::InvalidArgumentError(
            "`attach` must be the first request on Connect and must not be repeated"),
        "ATTACHED_TWICE");
  }
  if (request.more_size() == 0) return Accept(request, /*travels_alone=*/true);
  // Small operations that arrived together: their answers are sent together.
  HoldBack(true);
  absl::Status status = Accept(request, /*travels_alone=*/false);
  for (v1::ConnectRequest& following : *request.mutable_more())
    if (status.ok()) status = Accept(following, /*travels_alone=*/false);
  HoldBack(false);
  Flush();
  return status;
}

void ConnectStream::HoldBack(bool holds) {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_NE(holds_back_, holds);
  holds_back_ = holds;
}

absl::Status ConnectStream::Accept(v1::ConnectRequest& request, bool travels_alone) {
  std::shared_ptr<runtime::FirstCall> first_call;
  if (request.has_define_program()) {
    first_call = std::make_shared<runtime::FirstCall>(parts_.clock.steady, "decode", received_);
    first_call->Begin("digest_source");
  }
  sessions::Operation operation = ToOperation(request, *session_->host());
  if (auto* const define = std::get_if<sessions::DefineProgram>(&operation); first_call && define) {
    first_call->Begin("wait_for_session");
    define->first_call = std::move(first_call);
  }
  return session_->Accept(this, request.sequence(), request.acknowledged(), std::move(operation),
                          travels_alone);
}

int64_t ConnectStream::UnsentBytesMax() const {
  return session_->host()->HasRoom() ? kUnsentBytesMax : kUnsentBytesWithoutRoomMax;
}

void ConnectStream::OnReadDone(bool ok) {
  if (!ok) return session_ ? session_->EndAfterAnswers(this) : Close(absl::OkStatus());
  const absl::Status status = Handle();
  if (!status.ok()) return Close(status);
  {
    // Before WantsMore: from then on the session may ask for more at any moment.
    absl::MutexLock lock(&mutex_);
    KILN_CHECK(reading_);
    reading_ = false;
    stalled_ = unsent_bytes_ > UnsentBytesMax();
  }
  if (session_->WantsMore()) ReadMore();
}

void ConnectStream::ReadMore() {
  {
    absl::MutexLock lock(&mutex_);
    // Several threads may get here: the session's, when it can take more, and those of both
    // callbacks.
    if (reading_ || closing_ || stalled_) return;
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
  KILN_VALIDATE(*this, outgoing_.size());
}

void ConnectStream::Push(std::shared_ptr<const sessions::Answer> answer) {
  KILN_CHECK(answer != nullptr);
  absl::MutexLock lock(&mutex_);
  unsent_bytes_ += answer->charge.bytes();
  outgoing_.emplace_back(std::move(answer));
  KILN_VALIDATE(*this, outgoing_.size());
}

std::vector<ConnectStream::Outgoing> ConnectStream::TakeNext() {
  KILN_CHECK(!outgoing_.empty());
  std::vector<Outgoing> taken;
  int64_t bytes = 0;
  bool has_value = false;
  do {
    const sessions::Answer* answer = AnswerIn(outgoing_.front());
    if (answer != nullptr) {
      bytes += answer->charge.bytes();
      unsent_bytes_ -= answer->charge.bytes();
    }
    const bool is_alone = answer == nullptr || TakesTimeToCopy(answer);
    const bool is_value = answer != nullptr && answer->value;
    has_value = has_value || is_value;
    // A value's bytes go to the message's own result.
    taken.insert(is_value ? taken.begin() : taken.end(), std::move(outgoing_.front()));
    outgoing_.pop_front();
    if (is_alone || !takes_more_ || outgoing_.empty()) break;
    answer = AnswerIn(outgoing_.front());
    if (answer == nullptr || (answer->value && (has_value || TakesTimeToCopy(answer)))) break;
  } while (taken.size() < kAnswersMax && bytes < kAnswerBytesMax);
  KILN_VALIDATE(*this, outgoing_.size());
  return taken;
}

void ConnectStream::Validate() const {
  int64_t bytes = 0;
  for (const Outgoing& outgoing : outgoing_)
    if (const sessions::Answer* answer = AnswerIn(outgoing)) bytes += answer->charge.bytes();
  KILN_CHECK_EQ(unsent_bytes_, bytes);
  KILN_CHECK(!finished_ || (closing_ && !writing_ && !restarting_));
}

void ConnectStream::Flush() {
  std::vector<Outgoing> next;
  bool finish = false;
  absl::Status end;
  bool more = false;
  {
    absl::MutexLock lock(&mutex_);
    // OnWriteDone calls this again, so nothing is forgotten.
    if (writing_ || finished_ || holds_back_) return;
    if (!outgoing_.empty() && !broken_) {
      next = TakeNext();
      writing_ = true;
      more = !outgoing_.empty() && !TakesTimeToCopy(AnswerIn(outgoing_.front()));
    } else if (closing_ && !restarting_) {
      finish = finished_ = true;
      end = end_;
      KILN_VALIDATE(*this, outgoing_.size());
    } else {
      return;
    }
  }
  // Without the lock: once Finish has been called, OnDone may destroy this object at any moment.
  if (finish) return Finish(End(parts_, end));
  if (!TakesTimeToCopy(AnswerIn(next.front()))) return Write(next, more);
  // This may be a device's thread, which must not be blocked.
  parts_.copies->Schedule([self = self_, next, more] { self->Write(next, more); });
}

void ConnectStream::Write(const std::vector<Outgoing>& next, bool more) {
  KILN_CHECK(!next.empty());
  auto response = std::make_shared<v1::ConnectResponse>();
  const sessions::Answer* answer = AnswerIn(next.front());
  if (answer == nullptr) {
    response->mutable_attached()->set_last_sequence(std::get<uint64_t>(next.front()));
    response->mutable_attached()->set_most_operations(kOperationsMax);
    response->mutable_attached()->set_takes_many_blobs(true);
    return Send(*response, false);
  }
  FillResult(*answer, response->mutable_result());
  for (size_t i = 1; i < next.size(); ++i) FillResult(*AnswerIn(next[i]), response->add_more());
  if (answer->value) return CopyAndSend(answer->value, std::move(response), more);
  Send(*response, more);
}

void ConnectStream::CopyAndSend(const runtime::ValuePointer& value,
                                std::shared_ptr<v1::ConnectResponse> response, bool more) {
  // The bytes, and their copy in gRPC.
  auto charge = session_->host()->Reserve(memory::Use::kTransfers, 2 * value->bytes());
  if (!charge.ok()) return Copied(charge.status(), *response, more);
  transfer_ = *std::move(charge);
  std::string* data = response->mutable_result()->mutable_data();
  data->resize(static_cast<size_t>(value->bytes()));
  auto copied = [self = self_, value, response, more](const absl::Status& status) {
    self->Copied(self->session_->devices().AfterFailure(*value, status), *response, more);
  };
  const absl::Span<char> bytes = absl::MakeSpan(*data);
  if (buffers::IsAllHostMemory(*value)) return buffers::ReadWhole(*value, 0, bytes, copied);
  buffers::ReadWhole(*value, 0, bytes, [copied = std::move(copied), this](absl::Status status) {
    // This is a device's thread, which must not be blocked by a large message.
    parts_.copies->Schedule([copied, status = std::move(status)] { copied(status); });
  });
}

void ConnectStream::Copied(const absl::Status& copied, v1::ConnectResponse& response, bool more) {
  v1::Result* result = response.mutable_result();
  if (copied.ok()) {
    parts_.metrics->Sent(static_cast<int64_t>(result->data().size()));
  } else {
    // The error replaces the bytes.
    result->clear_data();
    *result->mutable_error() = ToProto(copied);
  }
  Send(response, more);
}

void ConnectStream::Send(const v1::ConnectResponse& response, bool more) {
  grpc::WriteOptions options;
  // If more follows, gRPC may send several messages in one write. Never for the first message: gRPC
  // would hold back the call's headers with it, and report neither as written.
  if (more) options.set_buffer_hint();
  Serialize(response, &response_bytes_);
  StartWrite(&response_bytes_, options);
}

void ConnectStream::OnWriteDone(bool ok) {
  bool resume = false;
  response_bytes_.Clear();
  transfer_.Release();
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK(writing_ && !finished_);
    writing_ = false;
    if (!ok) broken_ = closing_ = true;
    // Resumes at half of the limit, so that the stream does not stop and start with every answer.
    resume = stalled_ && unsent_bytes_ <= UnsentBytesMax() / 2;
    if (resume) stalled_ = false;
  }
  // Before the next write, which may end the stream.
  if (resume && session_->WantsMore()) ReadMore();
  Flush();
}

void ConnectStream::Close(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    // The first reason is kept; later ones are its consequences.
    if (!closing_) end_ = status;
    closing_ = true;
    // The stream that has taken over will send them.
    if (absl::IsAborted(status)) {
      outgoing_.clear();
      unsent_bytes_ = 0;
    }
    KILN_VALIDATE(*this, outgoing_.size());
  }
  Flush();
}

void ConnectStream::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
  }
  Close(absl::CancelledError("the client disconnected"));
}

void ConnectStream::OnDone() {
  if (session_) session_->Disconnect(this);
  // Destroys this object, unless a thread of the session still holds it.
  self_.reset();
}

}  // namespace kiln::rpc
