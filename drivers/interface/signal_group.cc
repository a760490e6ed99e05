#include "drivers/interface/signal_group.h"

#include <thread>
#include <utility>

#include "proto/check/check.h"

namespace kiln::drivers {
namespace {

// Members of a group reach an exchange within microseconds of each other, or much later. Where
// devices share cores, a spinning thread takes a core from those that it waits for, so it soon
// yields, and then sleeps.
constexpr int kLooks = 64;
constexpr int kYields = 128;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

template <typename Condition>
void Signals::WaitUntil(const Condition& holds) {
  for (int i = 0; i < kLooks + kYields; ++i) {
    if (holds()) return;
    if (i < kLooks) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
  absl::MutexLock lock(&mutex_);
  ++sleepers_;
  while (!holds()) changed_.Wait(&mutex_);
  KILN_CHECK_GT(sleepers_.load(), 0);
  --sleepers_;
}

void Signals::Changed() {
  ++changes_;
  // A thread that goes to sleep after this check sees the change: all these operations are
  // sequentially consistent, so both threads agree on their order.
  if (sleepers_.load() == 0) return;
  absl::MutexLock lock(&mutex_);
  changed_.SignalAll();
}

void SignalGroup::Raise(int signal) {
  KILN_CHECK(signal >= 0 && signal < signals_->count_)
      << "signal " << signal << " of " << signals_->count_;
  std::atomic<int64_t>& raised = signals_->raised_[signal];
  int64_t before = raised.load(std::memory_order_relaxed);
  // A later group may already have raised it, if this group's list was abandoned.
  while (before < number_ && !raised.compare_exchange_weak(before, number_)) {
  }
  KILN_CHECK(IsRaised(signal)) << signal;
  signals_->Changed();
}

absl::Status SignalGroup::Wait(int signal) {
  KILN_CHECK(signal >= 0 && signal < signals_->count_)
      << "signal " << signal << " of " << signals_->count_;
  signals_->WaitUntil([&] { return IsDecided(signal); });
  // A signal that was raised in time is OK, even if the group was aborted before this thread woke.
  return IsRaised(signal) ? absl::OkStatus() : AbortReason();
}

void SignalGroup::WaitForChange(int64_t seen) {
  signals_->WaitUntil([&] { return changes() != seen; });
}

void SignalGroup::Abort(absl::Status reason) {
  KILN_CHECK(!reason.ok());
  {
    absl::MutexLock lock(&mutex_);
    // Later failures are probably consequences of the first.
    if (abort_reason_.ok()) abort_reason_ = std::move(reason);
  }
  aborted_.store(true);
  signals_->Changed();
}

absl::Status SignalGroup::AbortReason() const {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(!abort_reason_.ok());
  return abort_reason_;
}

}  // namespace kiln::drivers
