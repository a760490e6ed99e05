#include "server/fairness/dispatcher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"

namespace kiln::fairness {
namespace {
absl::Status SessionEnded() { return absl::CancelledError("the session has ended"); }
}  // namespace

FairQueue::FlowId Dispatcher::AddFlow(const std::string& user, double weight) {
  absl::MutexLock lock(&mutex_);
  return queue_.AddFlow(user, weight);
}

void Dispatcher::RemoveFlow(FairQueue::FlowId flow) {
  std::vector<std::shared_ptr<Work>> dropped;
  {
    absl::MutexLock lock(&mutex_);
    for (const FairQueue::Item ticket : queue_.RemoveFlow(flow)) {
      const auto found = waiting_.find(ticket);
      dropped.push_back(std::move(found->second.work));
      waiting_.erase(found);
    }
  }
  // Without the lock, since Fail answers the client, which takes the session's lock.
  for (const auto& work : dropped) work->Fail(SessionEnded());
}

void Dispatcher::Enqueue(FairQueue::FlowId flow, std::shared_ptr<Work> work) {
  const absl::Status refused = Queue(flow, work);
  if (!refused.ok()) return work->Fail(refused);
  SubmitWaiting();
}

absl::Status Dispatcher::Queue(FairQueue::FlowId flow, const std::shared_ptr<Work>& work) {
  const absl::Time now = now_();
  const double predicted = work->predicted_seconds();
  const bool is_logged = log::IsOn(log::Level::kDebug);
  std::string label = is_logged ? work->label() : "";
  absl::MutexLock lock(&mutex_);
  if (!stopped_.ok()) return stopped_;
  const int64_t ticket = next_ticket_++;
  if (!queue_.Push(flow, ticket, predicted)) return SessionEnded();
  waiting_.emplace(ticket, Waiting{work, now});
  if (is_logged) unlogged_.push_back({ticket, std::move(label), predicted, queue_.size()});
  return absl::OkStatus();
}

void Dispatcher::LogQueued(const std::vector<Queued>& events) const {
  for (const Queued& event : events) {
    log::Debug("run_queued", {{"run", event.label},
                              {"device", device_},
                              {"ticket", absl::StrCat(event.ticket)},
                              {"predicted_seconds", absl::StrCat(event.predicted)},
                              {"queued", absl::StrCat(event.queued)}});
  }
}

void Dispatcher::LogChosen(const FairQueue::Entry& entry, const Work& work, absl::Duration waited,
                           int64_t queued, int64_t in_flight) const {
  if (!log::IsOn(log::Level::kDebug)) return;
  log::Debug("run_chosen", {{"run", work.label()},
                            {"device", device_},
                            {"ticket", absl::StrCat(entry.item)},
                            {"charged_seconds", absl::StrCat(entry.cost)},
                            {"waited_seconds", absl::StrCat(absl::ToDoubleSeconds(waited))},
                            {"left_queued", absl::StrCat(queued)},
                            {"in_flight", absl::StrCat(in_flight)}});
}

void Dispatcher::Finished(int64_t ticket, double seconds) {
  mutex_.Lock();
  const auto found = running_.find(ticket);
  if (found == running_.end()) {
    mutex_.Unlock();
    return;
  }
  queue_.Correct(found->second.flow, found->second.predicted, seconds);
  seconds_in_flight_ = std::max(0.0, seconds_in_flight_ - found->second.predicted);
  device_seconds_ += seconds;
  running_.erase(found);
  // With the lock still held: once it is free and nothing runs, whoever waits for that may destroy
  // this object.
  SubmitWaitingAndUnlock();
}

bool Dispatcher::Fits() const {
  const int count = static_cast<int>(running_.size());
  // However long they are: with one list on the device and one behind it, the device never waits
  // for us.
  if (count < limits_.min_in_flight) return true;
  return count < limits_.max_in_flight && seconds_in_flight_ < limits_.seconds_in_flight;
}

void Dispatcher::SubmitWaiting() {
  mutex_.Lock();
  SubmitWaitingAndUnlock();
}

// Locks by hand, since each Submit in the loop is called without the lock.
void Dispatcher::SubmitWaitingAndUnlock() {
  // The thread that submits looks at the queue again, under this lock, before it stops, so what has
  // just been queued is not forgotten.
  if (submitting_) {
    mutex_.Unlock();
    return;
  }
  submitting_ = true;
  while (true) {
    const std::vector<Queued> unlogged = std::exchange(unlogged_, {});
    if (suspended_ || !stopped_.ok() || queue_.size() == 0 || !Fits()) {
      if (unlogged.empty()) break;
      mutex_.Unlock();
      LogQueued(unlogged);
      mutex_.Lock();
      continue;
    }
    const FairQueue::Entry entry = *queue_.Pop();
    auto found = waiting_.find(entry.item);
    Waiting waiting = std::move(found->second);
    waiting_.erase(found);
    // Before Submit, which may call Finished before it returns.
    running_.emplace(entry.item, Running{entry.flow, entry.cost});
    seconds_in_flight_ += entry.cost;
    const int64_t queued = queue_.size();
    const auto in_flight = static_cast<int64_t>(running_.size());
    mutex_.Unlock();
    LogQueued(unlogged);
    const absl::Duration waited = now_() - waiting.since;
    LogChosen(entry, *waiting.work, waited, queued, in_flight);
    const absl::Status status = waiting.work->Submit(entry.item, waited);
    if (!status.ok()) waiting.work->Fail(status);
    // The last reference frees the work's buffers, which takes other locks.
    waiting.work.reset();
    mutex_.Lock();
    if (!status.ok() && running_.erase(entry.item) > 0) {
      // It took no time on the device, so its flow gets back all that it was charged.
      queue_.Correct(entry.flow, entry.cost, 0);
      seconds_in_flight_ = std::max(0.0, seconds_in_flight_ - entry.cost);
    }
  }
  submitting_ = false;
  mutex_.Unlock();
}

void Dispatcher::Suspend() {
  absl::MutexLock lock(&mutex_);
  suspended_ = true;
}

void Dispatcher::Stop(const absl::Status& reason) {
  absl::flat_hash_map<int64_t, Waiting> dropped;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = reason;
    // After `stopped_` is set nothing is queued any more, so neither of the two fills again.
    dropped.swap(waiting_);
    while (queue_.Pop().has_value()) {
    }
  }
  for (const auto& [ticket, waiting] : dropped) waiting.work->Fail(reason);
}

bool Dispatcher::WaitIdle(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    // A list may end before the thread that submitted it has left SubmitWaiting, and the caller may
    // be about to destroy this object.
    return running_.empty() && !submitting_;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&is_idle), timeout);
}

int64_t Dispatcher::queued() const {
  absl::MutexLock lock(&mutex_);
  return queue_.size();
}

double Dispatcher::device_seconds() const {
  absl::MutexLock lock(&mutex_);
  return device_seconds_;
}

}  // namespace kiln::fairness
