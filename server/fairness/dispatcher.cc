#include "server/fairness/dispatcher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/log/log.h"

namespace kiln::fairness {
namespace {
absl::Status SessionEnded() { return absl::CancelledError("the session was closed"); }
absl::Status Unwanted() { return absl::CancelledError("cancelled by the client"); }
}  // namespace

FairQueue::FlowId Dispatcher::AddFlow(const std::string& user, double weight, Priority priority) {
  absl::MutexLock lock(&mutex_);
  return queue_.flows().AddFlow(user, weight, priority);
}

void Dispatcher::SetWeight(const std::string& user, double weight) {
  absl::MutexLock lock(&mutex_);
  queue_.flows().SetWeight(user, weight);
}

void Dispatcher::RemoveFlow(FairQueue::FlowId flow) {
  std::vector<Waiting> dropped;
  {
    absl::MutexLock lock(&mutex_);
    for (const FairQueue::Item item : queue_.flows().RemoveFlow(flow))
      dropped.push_back(Take(item));
    KILN_VALIDATE(*this, entries());
  }
  Drop(std::move(dropped), SessionEnded());
}

void Dispatcher::DropUnwanted(FairQueue::FlowId flow) {
  std::vector<Waiting> dropped;
  {
    absl::MutexLock lock(&mutex_);
    const auto is_unwanted = [this](FairQueue::Item item) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return !waiting_.at(item).work->is_wanted();
    };
    for (const FairQueue::Item item : queue_.flows().RemoveIf(flow, is_unwanted))
      dropped.push_back(Take(item));
    KILN_VALIDATE(*this, entries());
  }
  Drop(std::move(dropped), Unwanted());
}

void Dispatcher::Drop(std::vector<Waiting> dropped, const absl::Status& status) {
  if (dropped.empty()) return;
  // Without the lock, since Fail answers the client, which takes the session's lock.
  for (const Waiting& waiting : dropped) waiting.work->Fail(status);
  dropped.clear();
  mutex_.Lock();
  queue_.flows().ReleaseHeld();
  SubmitWaitingAndUnlock();
}

Dispatcher::Waiting Dispatcher::Take(FairQueue::Item item) {
  const auto found = waiting_.find(item);
  KILN_CHECK(found != waiting_.end()) << "item " << item;
  Waiting waiting = std::move(found->second);
  KILN_CHECK_NE(waiting.work, nullptr) << "item " << item;
  waiting_.erase(found);
  if (waiting.begun) --begun_;
  if (waiting.work->is_users()) --users_work_;
  KILN_CHECK_GE(begun_, 0);
  return waiting;
}

void Dispatcher::PutBack(FairQueue::Item item, Waiting waiting) {
  KILN_CHECK_NE(waiting.work, nullptr) << "item " << item;
  if (waiting.begun) ++begun_;
  if (waiting.work->is_users()) ++users_work_;
  const bool is_new = waiting_.emplace(item, std::move(waiting)).second;
  KILN_CHECK(is_new) << "item " << item << " is queued twice";
}

void Dispatcher::Enqueue(FairQueue::FlowId flow, std::shared_ptr<Work> work) {
  const absl::Status refused = Queue(flow, work);
  if (!refused.ok()) return work->Fail(refused);
  if (on_users_work_ && work->is_users()) on_users_work_();
  SubmitWaiting();
}

UsersWork Dispatcher::users_work() const {
  absl::MutexLock lock(&mutex_);
  return {.is_there = users_work_ > 0, .last = last_users_work_};
}

absl::Status Dispatcher::Queue(FairQueue::FlowId flow, const std::shared_ptr<Work>& work) {
  const absl::Time now = now_();
  const double predicted = work->predicted_seconds();
  const bool is_logged = log::IsOn(log::Level::kDebug);
  std::string label = is_logged ? work->label() : "";
  absl::MutexLock lock(&mutex_);
  if (!stopped_.ok()) return stopped_;
  // Asked with the lock held: DropUnwanted, which is called after the work was given up, has either
  // not begun yet or not seen this work.
  if (!work->is_wanted()) return Unwanted();
  const FairQueue::Item item = next_item_++;
  if (!queue_.flows().Push(flow, item, predicted)) return SessionEnded();
  PutBack(item, Waiting{work, now});
  if (work->is_users()) last_users_work_ = now;
  if (is_logged) unlogged_.push_back({item, std::move(label), predicted, queue_.flows().size()});
  KILN_VALIDATE(*this, entries());
  return absl::OkStatus();
}

void Dispatcher::LogQueued(const std::vector<Queued>& events) const {
  for (const Queued& event : events) {
    log::Debug("run_queued", {{"run", event.label},
                              {"device", device_},
                              {"item", absl::StrCat(event.item)},
                              {"predicted_seconds", absl::StrCat(event.predicted)},
                              {"queued", absl::StrCat(event.queued)}});
  }
}

void Dispatcher::LogChosen(const DeviceQueue::Start& start, const Work& work, absl::Duration waited,
                           int64_t queued, int64_t in_flight) const {
  if (!log::IsOn(log::Level::kDebug)) return;
  log::Debug("run_chosen", {{"run", work.label()},
                            {"device", device_},
                            {"item", absl::StrCat(start.item)},
                            {"ticket", absl::StrCat(start.ticket)},
                            {"charged_seconds", absl::StrCat(start.cost)},
                            {"waited_seconds", absl::StrCat(absl::ToDoubleSeconds(waited))},
                            {"left_queued", absl::StrCat(queued)},
                            {"in_flight", absl::StrCat(in_flight)}});
}

void Dispatcher::ForgetHanded(int64_t ticket) {
  const auto found = handed_.find(ticket);
  if (found == handed_.end()) return;
  if (found->second.is_users) --users_work_;
  handed_.erase(found);
}

void Dispatcher::Finished(int64_t ticket, double seconds) {
  const absl::Time now = now_();
  mutex_.Lock();
  if (!queue_.Finished(ticket, seconds)) {
    mutex_.Unlock();
    return;
  }
  device_seconds_ += seconds;
  if (const auto found = handed_.find(ticket); found != handed_.end() && found->second.is_users)
    last_users_work_ = now;
  ForgetHanded(ticket);
  parked_begun_.erase(ticket);
  KILN_VALIDATE(*this, entries());
  // With the lock still held: once it is released and nothing runs, a thread that waits for that
  // may destroy this object.
  SubmitWaitingAndUnlock();
}

void Dispatcher::SubmitWaiting() {
  mutex_.Lock();
  SubmitWaitingAndUnlock();
}

// Locks manually, since each Submit in the loop is called without the lock.
void Dispatcher::SubmitWaitingAndUnlock() {
  // Before it stops, the thread that submits checks the queue again under this lock, so newly
  // queued work is not missed.
  if (submitting_) {
    mutex_.Unlock();
    return;
  }
  submitting_ = true;
  while (true) {
    const std::vector<Queued> unlogged = std::exchange(unlogged_, {});
    const auto start = NextStart();
    if (!start && unlogged.empty()) break;
    if (!start) {
      mutex_.Unlock();
      LogQueued(unlogged);
      mutex_.Lock();
      continue;
    }
    Waiting waiting = Take(start->item);
    const bool is_users = waiting.work->is_users();
    const bool is_new = handed_.emplace(start->ticket, HandedOver{waiting.work, is_users}).second;
    KILN_CHECK(is_new) << "ticket " << start->ticket;
    if (is_users) ++users_work_;
    KILN_VALIDATE(*this, entries());
    const int64_t queued = queue_.flows().size();
    const int64_t in_flight = queue_.in_flight();
    mutex_.Unlock();
    LogQueued(unlogged);
    LogChosen(*start, *waiting.work, now_() - waiting.since, queued, in_flight);
    SubmitStarted(*start, std::move(waiting));
    mutex_.Lock();
  }
  KILN_CHECK(submitting_);
  submitting_ = false;
  mutex_.Unlock();
}

bool Dispatcher::GoesOn(int64_t ticket, double seconds) {
  absl::MutexLock lock(&mutex_);
  return queue_.GoesOn(ticket, seconds);
}

void Dispatcher::Park(int64_t ticket, bool has_begun) {
  absl::MutexLock lock(&mutex_);
  queue_.Park(ticket);
  if (has_begun) parked_begun_.insert(ticket);
  KILN_VALIDATE(*this, entries());
}

bool Dispatcher::Begins() const {
  absl::MutexLock lock(&mutex_);
  return !suspended_ && stopped_.ok();
}

void Dispatcher::Unpark(int64_t ticket) {
  absl::MutexLock lock(&mutex_);
  queue_.Unpark(ticket);
  parked_begun_.erase(ticket);
  KILN_VALIDATE(*this, entries());
}

bool Dispatcher::Continue(int64_t ticket, std::shared_ptr<Work> work, double predicted_seconds) {
  const absl::Time now = now_();
  absl::MutexLock lock(&mutex_);
  const FairQueue::Item item = next_item_++;
  if (!queue_.Continue(ticket, item, predicted_seconds)) return false;
  PutBack(item, Waiting{std::move(work), now, /*begun=*/true});
  KILN_VALIDATE(*this, entries());
  return true;
}

void Dispatcher::ReleaseHeld() {
  absl::MutexLock lock(&mutex_);
  queue_.flows().ReleaseHeld();
}

void Dispatcher::StopInFlight(const absl::Status& why) {
  std::vector<std::shared_ptr<Work>> running;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [ticket, handed] : handed_)
      if (auto one = handed.work.lock()) running.push_back(std::move(one));
  }
  for (const auto& work : running) work->Stop(why);
}

void Dispatcher::Suspend() {
  absl::MutexLock lock(&mutex_);
  suspended_ = true;
}

std::optional<DeviceQueue::Start> Dispatcher::NextStart() {
  while (const auto start = queue_.Next()) {
    if (!suspended_ || waiting_.at(start->item).begun) return start;
    queue_.PutBack(*start, /*hold=*/true);
  }
  return std::nullopt;
}

void Dispatcher::SubmitStarted(const DeviceQueue::Start& start, Waiting waiting) {
  // Keeps the work alive after it has left the queue: destroying it frees its buffers, which takes
  // other locks.
  const std::shared_ptr<Work> work = waiting.work;
  const auto handed = work->Submit(start.ticket, now_() - waiting.since);
  const bool has_more =
      handed.ok() && (*handed == Work::Handed::kSome || *handed == Work::Handed::kNoRoom);
  const double next_seconds = has_more ? work->predicted_seconds() : 0;
  absl::Status failure;
  {
    absl::MutexLock lock(&mutex_);
    failure = Settle(start, handed, next_seconds, &waiting);
    KILN_VALIDATE(*this, entries());
  }
  if (failure.ok()) return;
  work->Fail(failure);
  // It may have held memory that other work waits for.
  absl::MutexLock lock(&mutex_);
  queue_.flows().ReleaseHeld();
}

absl::Status Dispatcher::Settle(const DeviceQueue::Start& start,
                                const absl::StatusOr<Work::Handed>& handed, double next_seconds,
                                Waiting* waiting) {
  // Finished was not called for it, and will not be.
  if (!handed.ok() || *handed == Work::Handed::kNoRoom) ForgetHanded(start.ticket);
  if (!handed.ok()) {
    // It took no time on the device, so its flow gets back the whole charge.
    queue_.Refused(start.ticket);
    return handed.status();
  }
  switch (*handed) {
    case Work::Handed::kAll:
      return absl::OkStatus();
    case Work::Handed::kAlone:
      queue_.KeepAlone(start.ticket);
      return absl::OkStatus();
    case Work::Handed::kNoRoom:
      // DropUnwanted does not find work that is being submitted.
      if (const absl::Status status = waiting->work->is_wanted() ? stopped_ : Unwanted();
          !status.ok() && !waiting->begun) {
        queue_.Refused(start.ticket);
        return status;
      }
      // If nothing is left that could end, the work that held the memory has just been dropped.
      if (!queue_.PutBack(start,
                          /*hold=*/queue_.in_flight() > 1 || begun_ > 0 || !parked_begun_.empty()))
        return SessionEnded();
      break;
    case Work::Handed::kSome:
      if (!queue_.Continue(start, next_seconds)) return SessionEnded();
      waiting->begun = true;
      break;
  }
  PutBack(start.item, std::move(*waiting));
  return absl::OkStatus();
}

void Dispatcher::Stop(const absl::Status& reason) {
  std::vector<Waiting> dropped;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = reason;
    // Once `stopped_` is set, nothing more is queued.
    const auto has_not_begun = [this](FairQueue::Item item) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return !waiting_.at(item).begun;
    };
    for (const FairQueue::Item item : queue_.flows().RemoveAllIf(has_not_begun))
      dropped.push_back(Take(item));
    KILN_CHECK_EQ(begun_, waiting_.size()) << "only begun work waits on";
    KILN_VALIDATE(*this, entries());
  }
  Drop(std::move(dropped), reason);
}

bool Dispatcher::WaitIdle(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    // A list may end before the thread that submitted it has left SubmitWaiting, and the caller may
    // destroy this object when idle.
    return queue_.in_flight() == 0 && begun_ == 0 && parked_begun_.empty() && !submitting_;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&is_idle), timeout);
}

void Dispatcher::Validate() const {
  const std::vector<FairQueue::Item> items = queue_.flows().Items();
  // Items have different numbers, so these are the same.
  KILN_CHECK_EQ(items.size(), waiting_.size());
  KILN_CHECK_EQ(queue_.flows().size(), items.size());
  for (const FairQueue::Item item : items)
    KILN_CHECK(waiting_.contains(item)) << "item " << item << " is in the queue only";
  int64_t begun = 0, users = 0;
  for (const auto& [item, waiting] : waiting_) {
    KILN_CHECK_LT(item, next_item_);
    KILN_CHECK_NE(waiting.work, nullptr) << "item " << item;
    begun += waiting.begun ? 1 : 0;
    users += waiting.work->is_users() ? 1 : 0;
    // Settle refuses such work if it comes back after Stop.
    KILN_CHECK(stopped_.ok() || waiting.begun) << "item " << item;
  }
  KILN_CHECK_EQ(begun, begun_);
  for (const auto& [ticket, handed] : handed_) users += handed.is_users ? 1 : 0;
  KILN_CHECK_EQ(users, users_work_);
  const std::vector<int64_t> in_flight = queue_.InFlight(), parked = queue_.Parked();
  KILN_CHECK_EQ(in_flight.size() + parked.size(), handed_.size());
  for (const auto* tickets : {&in_flight, &parked})
    for (const int64_t ticket : *tickets)
      KILN_CHECK(handed_.contains(ticket)) << "ticket " << ticket;
  for (const int64_t ticket : parked_begun_) {
    const bool is_parked = std::find(parked.begin(), parked.end(), ticket) != parked.end();
    KILN_CHECK(is_parked) << "ticket " << ticket;
  }
}

int64_t Dispatcher::queued() const {
  absl::MutexLock lock(&mutex_);
  return queue_.flows().size();
}

double Dispatcher::predicted_seconds_in_flight() const {
  absl::MutexLock lock(&mutex_);
  return queue_.seconds_in_flight();
}

double Dispatcher::device_seconds() const {
  absl::MutexLock lock(&mutex_);
  return device_seconds_;
}

}  // namespace kiln::fairness
