// A call that periodically checks something and sends changes.
#ifndef KILN_SERVER_RPC_SERVICES_WATCH_H_
#define KILN_SERVER_RPC_SERVICES_WATCH_H_

#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/rpc/deadline.h"

namespace kiln::rpc {

// Created with new; deletes itself. A derived class must call Look once, at the end of its
// constructor.
template <typename Response>
class Watch : public grpc::ServerWriteReactor<Response> {
 public:
  void OnWriteDone(bool ok) final { ok ? AfterWrite() : End(grpc::Status::CANCELLED); }
  void OnCancel() final {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    if (alarm_) alarm_->Cancel();
  }
  void OnDone() final { delete this; }

 protected:
  enum class Next { kSend, kWait, kEnd };

  // `at_once`: after a message, checks for the next one without waiting.
  explicit Watch(absl::Duration interval, bool at_once = false)
      : interval_(interval), at_once_(at_once) {}
  ~Watch() override = default;

  // Called by one thread at a time. `response` is empty; it is sent for kSend. For kEnd the call
  // ends with `end`.
  virtual Next Fill(Response* response, grpc::Status* end) = 0;

  void Look() {
    response_.Clear();
    grpc::Status end;
    switch (Fill(&response_, &end)) {
      case Next::kSend:
        return this->StartWrite(&response_);
      case Next::kWait:
        return Wait();
      case Next::kEnd:
        return End(end);
    }
  }

 private:
  void AfterWrite() { at_once_ ? Look() : Wait(); }
  void Wait() {
    {
      absl::MutexLock lock(&mutex_);
      // Under the same lock as OnCancel, which either finds the alarm or prevents it from being
      // set.
      if (!cancelled_) {
        alarm_ = std::make_unique<grpc::Alarm>();
        // Wake is called on a gRPC thread when the time has passed or the alarm was cancelled.
        alarm_->Set(FromNow(interval_), [this](bool) { Wake(); });
        return;
      }
    }
    End(grpc::Status::CANCELLED);
  }
  void Wake() {
    bool cancelled;
    {
      absl::MutexLock lock(&mutex_);
      cancelled = cancelled_;
    }
    cancelled ? End(grpc::Status::CANCELLED) : Look();
  }
  // Without the lock: OnDone may delete this object before Finish returns.
  void End(const grpc::Status& status) { this->Finish(status); }

  const absl::Duration interval_;
  const bool at_once_;
  Response response_;
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_WATCH_H_
