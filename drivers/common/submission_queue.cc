#include "drivers/common/submission_queue.h"

#include <pthread.h>

#include <utility>

namespace kiln::drivers {

SubmissionQueue::SubmissionQueue(const std::string& name) : thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

SubmissionQueue::~SubmissionQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    work_.Signal();
  }
  thread_.join();
}

void SubmissionQueue::Push(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  ++pushed_;
  work_.Signal();
}

int64_t SubmissionQueue::unfinished() const {
  absl::MutexLock lock(&mutex_);
  return pushed_ - ended_;
}

void SubmissionQueue::Wait() {
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
    ended_changed_.SignalAll();
  }
}

}  // namespace kiln::drivers
