#include "server/sessions/executor.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"

namespace kiln::sessions {

void Executor::Add(uint64_t sequence, Operation operation) {
  absl::MutexLock lock(&mutex_);
  if (!closed_) queue_.push_back({sequence, std::move(operation)});
  KILN_VALIDATE(*this, entries());
}

void Executor::Run(const std::shared_ptr<Executor>& self) {
  {
    absl::MutexLock lock(&self->mutex_);
    if (self->busy_) return;
    self->busy_ = true;
  }
  if (self->TakeNext()) Continue(self);
}

bool Executor::TakeNext() {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(busy_) << "an operation was resumed twice";
  busy_ = executing_ = !closed_ && pauses_ == 0 && !queue_.empty();
  if (!busy_) return false;
  current_ = std::move(queue_.front());
  queue_.pop_front();
  KILN_VALIDATE(*this, entries());
  return true;
}

void Executor::PutBack() {
  Queued back = std::move(current_);
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(busy_ && executing_);
  executing_ = false;
  if (!closed_) queue_.push_front(std::move(back));
  KILN_VALIDATE(*this, entries());
}

void Executor::Continue(const std::shared_ptr<Executor>& self) {
  do {
    const Queued& current = self->current_;
    if (const AddWaiter add_waiter =
            self->steps_.must_wait_for(current.sequence, current.operation)) {
      // Back in the queue, where Close finds it.
      self->PutBack();
      const auto resume = [self] {
        if (self->TakeNext()) Continue(self);
      };
      if (add_waiter(resume)) return;
    } else {
      self->steps_.execute(current.sequence, self->current_.operation);
      self->MarkExecuted();
    }
  } while (self->TakeNext());
}

void Executor::MarkExecuted() {
  current_.operation = UnknownOperation();  // frees the bytes of a Write now
  std::vector<Waiter> ready;
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK(busy_ && executing_);
    KILN_CHECK_GE(current_.sequence, executed_);
    executed_ = current_.sequence;
    const auto later =
        std::stable_partition(waiters_.begin(), waiters_.end(),
                              [&](const Waiter& waiter) { return waiter.sequence <= executed_; });
    ready.assign(std::make_move_iterator(waiters_.begin()), std::make_move_iterator(later));
    waiters_.erase(waiters_.begin(), later);
    KILN_VALIDATE(*this, entries());
  }
  for (const Waiter& waiter : ready) waiter.then();
}

void Executor::WhenExecuted(uint64_t sequence, std::function<void()> then) {
  KILN_CHECK(then != nullptr);
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_ && executed_ < sequence) {
      waiters_.push_back({sequence, std::move(then)});
      KILN_VALIDATE(*this, entries());
      return;
    }
  }
  then();
}

uint64_t Executor::Pause() {
  absl::MutexLock lock(&mutex_);
  ++pauses_;
  mutex_.Await(absl::Condition(
      +[](bool* executing) { return !*executing; }, &executing_));
  return executed_;
}

void Executor::Unpause() {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_GT(pauses_, 0);
  --pauses_;
}

Executor::Dropped Executor::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  Dropped dropped;
  dropped.operations.swap(queue_);
  for (Waiter& waiter : waiters_) dropped.waiters.push_back(std::move(waiter.then));
  waiters_.clear();
  KILN_VALIDATE(*this, entries());
  return dropped;
}

void Executor::Validate() const {
  KILN_CHECK(busy_ || !executing_);
  KILN_CHECK_GE(pauses_, 0);
  KILN_CHECK(!closed_ || (queue_.empty() && waiters_.empty()));
  uint64_t before = executed_;
  for (const Queued& queued : queue_) {
    KILN_CHECK_GE(queued.sequence, before);
    before = queued.sequence;
  }
  for (const Waiter& waiter : waiters_) {
    KILN_CHECK_GT(waiter.sequence, executed_);
    KILN_CHECK(waiter.then != nullptr) << waiter.sequence;
  }
}

}  // namespace kiln::sessions
