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

// While at most this many operations are in flight, each is written by the thread that sends it,
// without waiting for another thread to wake up.
constexpr size_t kFewInFlight = 16;
// Limits of unanswered operations; one operation may exceed the bytes.
constexpr size_t kInFlightMax = 4096;
constexpr size_t kInFlightBytesMax = 256 << 20;
// Only operations of at most this size share messages.
constexpr size_t kTogetherBytes = 1024;

// Errors after which attaching again is useless: the session is gone or never belonged to the
// caller.
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
  writer_ = std::thread([this] { WriteLoop(); });
  reader_ = std::thread([this] { ReadLoop(); });
}

OperationStream::~OperationStream() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    // Ends the read in which the reading thread waits, and the write of the writing thread.
    if (context_ != nullptr) context_->TryCancel();
  }
  reader_.join();
  writer_.join();
}

uint64_t OperationStream::Send(v1::ConnectRequest request, const Callback& callback) {
  // Kept until it is answered, since a new stream may have to send it again.
  auto shared = std::make_shared<v1::ConnectRequest>(std::move(request));
  const size_t bytes = shared->ByteSizeLong();
  absl::Status broken;
  uint64_t sequence = 0;
  bool is_mine = false;  // to write
  {
    absl::MutexLock lock(&mutex_);
    const bool is_callback = std::this_thread::get_id() == reader_.get_id();
    // A callback's thread takes the answers that make room, so it must not wait for room. A Cancel
    // makes room itself.
    if (!shared->has_cancel() && !is_callback)
      mutex_.Await(absl::Condition(this, &OperationStream::HasRoom));
    shared->set_acknowledged(Acknowledged());
    sequence = ++last_sequence_;
    shared->set_sequence(sequence);
    broken = broken_;
    if (broken.ok()) {
      pending_[sequence] = Pending{std::move(shared), bytes, callback};
      pending_bytes_ += bytes;
      if (live_ && !writing_ && !stopping_) {
        writing_ = true;
        is_mine = pending_.size() <= kFewInFlight && !is_callback;
        wakes_writer_ = !is_mine;
      }
    }
  }
  // Without locks, because the callback may send, too.
  if (!broken.ok()) callback(broken);
  if (is_mine) WriteOne();
  return sequence;
}

bool OperationStream::HasRoom() const {
  return pending_.size() < kInFlightMax && pending_bytes_ < kInFlightBytesMax;
}

std::vector<OperationStream::Request> OperationStream::TakeUnsent() {
  std::vector<Request> taken;
  if (!live_) return taken;
  // Operations that have not been sent have not been answered either, so none is missing here.
  for (auto next = pending_.upper_bound(sent_);
       next != pending_.end() && static_cast<int>(taken.size()) < operations_max_; ++next) {
    const bool is_small = next->second.bytes <= kTogetherBytes;
    if (!taken.empty() && !is_small) break;
    taken.push_back(next->second.request);
    sent_ = next->first;
    if (!is_small) break;
  }
  return taken;
}

void OperationStream::WriteOne() {
  std::vector<Request> requests;
  {
    absl::MutexLock lock(&mutex_);
    requests = TakeUnsent();
  }
  bool written = true;
  if (requests.size() == 1) {
    written = stream_->Write(*requests.front());
  } else if (!requests.empty()) {
    v1::ConnectRequest message = *requests.front();
    for (size_t i = 1; i < requests.size(); ++i) *message.add_more() = *requests[i];
    written = stream_->Write(message);
  }
  absl::MutexLock lock(&mutex_);
  // The reading thread notices it as well; it attaches again and resends what was not received.
  if (!written) live_ = false;
  PassOn();
}

void OperationStream::PassOn() {
  // The writing thread exits when stopping_ is set.
  wakes_writer_ = live_ && !stopping_ && !pending_.empty() && pending_.rbegin()->first > sent_;
  writing_ = wakes_writer_;
}

void OperationStream::WriteLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto has_turn = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return wakes_writer_ || stopping_;
      };
      mutex_.Await(absl::Condition(&has_turn));
      if (!wakes_writer_) return;
      wakes_writer_ = false;
    }
    WriteOne();
  }
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
    // After `patience_` the lease has run out and the session is gone.
    if (IsFinal(status) || absl::Now() > give_up) break;
    absl::MutexLock lock(&mutex_);
    // Random, so that clients that were disconnected together do not reconnect at the same moment.
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
    // The stream uses its context until it is destroyed.
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
  absl::MutexLock lock(&mutex_);
  operations_max_ = std::max<int>(1, static_cast<int>(answer.attached().most_operations()));
  sent_ = answer.attached().last_sequence();
  live_ = true;
  PassOn();
  return absl::OkStatus();
}

absl::Status OperationStream::ReadAnswers() {
  v1::ConnectResponse answer;
  while (stream_->Read(&answer)) {
    if (answer.has_result()) Deliver(std::move(*answer.mutable_result()));
    for (v1::Result& result : *answer.mutable_more()) Deliver(std::move(result));
  }
  {
    absl::MutexLock lock(&mutex_);
    live_ = false;
    // A thread that is writing fails soon, because the stream is broken.
    mutex_.Await(absl::Condition(
        +[](bool* writing) { return !*writing; }, &writing_));
  }
  absl::Status status = FromGrpc(stream_->Finish(), address_);
  return status.ok() ? absl::UnavailableError("the daemon closed the stream") : status;
}

void OperationStream::Deliver(v1::Result result) {
  Callback callback;
  {
    absl::MutexLock lock(&mutex_);
    auto found = pending_.find(result.sequence());
    if (found == pending_.end()) return;  // an answer repeated after a reconnect
    callback = std::move(found->second.callback);
    pending_bytes_ -= found->second.bytes;
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
    // In the same critical section as broken_, so that an operation is either here or refused by
    // Send.
    failed.swap(pending_);
    pending_bytes_ = 0;
  }
  for (auto& [sequence, pending] : failed) pending.callback(status);
}

}  // namespace kiln::client
