#include "drivers/common/submission_queue.h"

#include <pthread.h>

#include <utility>

#include "proto/check/check.h"

namespace kiln::drivers {

SubmissionQueue::SubmissionQueue(const std::string& name) : thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

SubmissionQueue::~SubmissionQueue() {
  KILN_CHECK_NE(std::this_thread::get_id(), thread_.get_id()) << "a task destroys its queue";
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    work_.Signal();
  }
  thread_.join();
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(tasks_.empty()) << tasks_.size() << " tasks are left";
  KILN_CHECK_EQ(ended_, pushed_);
}

void SubmissionQueue::Validate() const {
  const int64_t waiting = static_cast<int64_t>(tasks_.size());
  KILN_CHECK_GE(ended_, 0);
  KILN_CHECK_GE(pushed_ - ended_, waiting);
  KILN_CHECK_LE(pushed_ - ended_, waiting + 1);
}

void SubmissionQueue::Push(std::function<void()> task) {
  KILN_CHECK(task != nullptr);
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  ++pushed_;
  KILN_VALIDATE(*this, 1);
  work_.Signal();
}

int64_t SubmissionQueue::unfinished() const {
  absl::MutexLock lock(&mutex_);
  return pushed_ - ended_;
}

void SubmissionQueue::Wait() {
  KILN_CHECK_NE(std::this_thread::get_id(), thread_.get_id()) << "a task waits for itself";
  absl::MutexLock lock(&mutex_);
  // Wait by count, since a queue that others keep filling may never be empty.
  const int64_t last = pushed_;
  while (ended_ < last) ended_changed_.Wait(&mutex_);
}

void SubmissionQueue::Run() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    while (tasks_.empty() && !stopping_) work_.Wait(&mutex_);
    // Stop only when the queue is empty: threads that pushed a task wait for its end.
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    // The task may push more.
    mutex_.Unlock();
    task();
    task = nullptr;  // destroys what it holds before waiters are woken
    mutex_.Lock();
    ++ended_;
    KILN_CHECK_LE(ended_, pushed_);
    KILN_VALIDATE(*this, 1);
    ended_changed_.SignalAll();
  }
}

}  // namespace kiln::drivers
