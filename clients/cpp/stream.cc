#include "clients/cpp/stream.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cpp/status.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
constexpr absl::Duration kTransferPause = absl::Milliseconds(50);

// Errors after which attaching again is of no use: the session is gone or was never ours.
bool IsFinal(const absl::Status& status) { return !status.ok() && !IsLostConnection(status); }

}  // namespace

OperationStream::OperationStream(v1::SessionService::StubInterface& stub, std::string session_id,
                                 std::string address, absl::Duration patience,
                                 uint64_t last_sequence)
    : stub_(stub),
      session_id_(std::move(session_id)),
      address_(std::move(address)),
      patience_(patience),
      last_sequence_(last_sequence) {
  reader_ = std::thread([this] { ReadLoop(); });
}

OperationStream::~OperationStream() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    // Ends the read in which the reading thread is waiting.
    if (context_ != nullptr) context_->TryCancel();
  }
  reader_.join();
}

uint64_t OperationStream::Send(v1::ConnectRequest request, const Callback& callback) {
  // Kept until it is answered, since a new stream may have to send it again.
  auto shared = std::make_shared<v1::ConnectRequest>(std::move(request));
  absl::Status broken;
  uint64_t sequence = 0;
  {
    absl::MutexLock write_lock(&write_mutex_);
    {
      absl::MutexLock lock(&mutex_);
      // Under write_mutex_, so that numbers reach the wire in order; the daemon refuses gaps.
      sequence = last_sequence_ + 1;
      shared->set_sequence(sequence);
      shared->set_acknowledged(Acknowledged());
      broken = broken_;
      last_sequence_ = sequence;
      if (broken.ok()) pending_[sequence] = Pending{shared, callback};
    }
    // A failed write is seen by the reading thread, which attaches again and sends the operation
    // once more.
    if (broken.ok() && live_) stream_->Write(*shared);
  }
  // Without locks: it may send in its turn.
  if (!broken.ok()) callback(broken);
  return sequence;
}

uint64_t OperationStream::Acknowledged() const {
  return pending_.empty() ? last_sequence_ : pending_.begin()->first - 1;
}

uint64_t OperationStream::last_sequence() {
  absl::MutexLock lock(&mutex_);
  return last_sequence_;
}

absl::Status OperationStream::ThroughCuts(const std::function<absl::Status()>& transfer) {
  const absl::Time give_up = absl::Now() + patience_;
  while (true) {
    absl::Status status = transfer();
    if (!IsLostConnection(status)) return status;
    absl::MutexLock lock(&mutex_);
    // Wakes early once the stream has failed for good.
    mutex_.AwaitWithTimeout(absl::Condition(
                                +[](absl::Status* broken) { return !broken->ok(); }, &broken_),
                            kTransferPause);
    if (!broken_.ok()) return broken_;
    if (absl::Now() > give_up) return status;
  }
}

bool OperationStream::stopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void OperationStream::ReadLoop() {
  std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<double> share(0.5, 1.0);
  absl::Duration pause = kFirstPause;
  absl::Time give_up = absl::Now() + patience_;
  absl::Status status;
  while (!stopping()) {
    status = Attach();
    if (status.ok()) {
      pause = kFirstPause;
      status = ReadAnswers();
      give_up = absl::Now() + patience_;
    }
    // After `patience_` the lease has run out, and the session is gone.
    if (IsFinal(status) || absl::Now() > give_up) break;
    absl::MutexLock lock(&mutex_);
    // Clients that were cut off together do not come back together.
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), pause * share(random));
    pause = std::min(pause * 2, kLongestPause);
  }
  FailAll(stopping() ? absl::CancelledError("the client has closed its session") : status);
}

absl::Status OperationStream::Attach() {
  v1::ConnectRequest attach;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return absl::CancelledError("closing");
    // The stream uses its context until it is gone.
    stream_.reset();
    context_ = std::make_unique<grpc::ClientContext>();
    stream_ = stub_.Connect(context_.get());
    attach.set_acknowledged(Acknowledged());
  }
  attach.mutable_attach()->set_session_id(session_id_);
  attach.mutable_attach()->set_takes_more(true);
  v1::ConnectResponse answer;
  if (!stream_->Write(attach) || !stream_->Read(&answer))
    return FromGrpc(stream_->Finish(), address_);
  absl::MutexLock write_lock(&write_mutex_);
  std::vector<std::shared_ptr<v1::ConnectRequest>> missing;
  {
    absl::MutexLock lock(&mutex_);
    for (auto next = pending_.upper_bound(answer.attached().last_sequence());
         next != pending_.end(); ++next) {
      missing.push_back(next->second.request);
    }
  }
  // Under write_mutex_ still, and before live_: whatever Send gets meanwhile comes after these.
  for (const auto& request : missing) stream_->Write(*request);
  live_ = true;
  return absl::OkStatus();
}

absl::Status OperationStream::ReadAnswers() {
  v1::ConnectResponse answer;
  while (stream_->Read(&answer)) {
    if (answer.has_result()) Deliver(std::move(*answer.mutable_result()));
    for (v1::Result& result : *answer.mutable_more()) Deliver(std::move(result));
  }
  {
    absl::MutexLock write_lock(&write_mutex_);
    live_ = false;
  }
  absl::Status status = FromGrpc(stream_->Finish(), address_);
  return status.ok() ? absl::UnavailableError("the daemon ended the stream") : status;
}

void OperationStream::Deliver(v1::Result result) {
  Callback callback;
  {
    absl::MutexLock lock(&mutex_);
    auto found = pending_.find(result.sequence());
    if (found == pending_.end()) return;  // an answer repeated after a reconnect
    callback = std::move(found->second.callback);
    pending_.erase(found);
  }
  if (result.has_error()) {
    callback(FromProto(result.error()));
  } else {
    callback(std::move(result));
  }
}

void OperationStream::FailAll(const absl::Status& status) {
  std::map<uint64_t, Pending> failed;
  {
    absl::MutexLock lock(&mutex_);
    broken_ = status;
    // In one step with broken_, so that an operation is either here or refused by Send.
    failed.swap(pending_);
  }
  for (auto& [sequence, pending] : failed) pending.callback(status);
}

}  // namespace kiln::client
