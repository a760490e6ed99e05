#include "drivers/cpu/group_threads.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "drivers/cpu/worker_pool.h"
#include "proto/check/check.h"

namespace kiln::drivers::cpu {

GroupThreads::GroupThreads(std::function<int()> cores, SteadyClock now)
    : ask_for_cores_(std::move(cores)), now_(std::move(now)) {}

void GroupThreads::Validate() const {
  struct Counts {
    int awake = 0;
    int running = 0;
  };
  std::map<const SignalGroup*, Counts> groups;
  std::set<const Execution*> lists;
  for (const Member* member : members_) {
    const bool is_new = lists.insert(&member->execution).second;
    KILN_CHECK(is_new) << "a list is a member twice";
    KILN_CHECK(!member->is_aside || !member->has_ended);
    Counts& group = groups[&member->group()];
    if (member->is_awake) ++group.awake;
    if (!member->is_aside && !member->has_ended) ++group.running;
  }
  for (const auto& [group, counts] : groups) {
    KILN_CHECK_GE(counts.awake, 1) << "every thread of a group sleeps";
    KILN_CHECK_LE(counts.running, counts.awake);
  }
  KILN_CHECK_GE(cores_, 1);
}

void GroupThreads::Run(Execution& execution) {
  SignalGroup& group = execution.group();
  Member self(execution);
  absl::MutexLock lock(&mutex_);
  LookAtCores();
  members_.push_back(&self);
  KILN_VALIDATE(*this, members_.size());
  GoOn(self, self);
  while (!self.has_ended) {
    // Read before Take, so that a list that becomes ready after Take changes the counter.
    const int64_t seen = group.changes();
    if (Member* next = Take(group)) {
      GoOn(*next, self);
    } else if (Awake(group) > cores_) {
      Sleep(self);
    } else {
      mutex_.Unlock();
      group.WaitForChange(seen);
      mutex_.Lock();
    }
  }
  Leave(self);
}

int GroupThreads::asleep() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(std::count_if(members_.begin(), members_.end(),
                                        [](const Member* m) { return !m->is_awake; }));
}

void GroupThreads::LookAtCores() {
  const SteadyTime now = now_();
  if (now < next_look_) return;
  next_look_ = now + WorkerPool::kCoresInterval;
  cores_ = std::max(1, ask_for_cores_());
}

void GroupThreads::GoOn(Member& member, const Member& self) {
  KILN_CHECK(!member.has_ended && self.is_awake);
  member.is_aside = false;
  mutex_.Unlock();
  const bool has_ended = member.execution.GoOn();
  mutex_.Lock();
  if (&member != &self) helped_.fetch_add(1, std::memory_order_relaxed);
  KILN_CHECK(!member.is_aside && !member.has_ended) << "another thread ran the list meanwhile";
  if (!has_ended) {
    member.is_aside = true;
    const auto found = std::find(members_.begin(), members_.end(), &member);
    KILN_CHECK(found != members_.end());
    members_.erase(found);
    members_.push_back(&member);
    KILN_VALIDATE(*this, members_.size());
    return;
  }
  member.has_ended = true;
  KILN_VALIDATE(*this, members_.size());
  if (&member == &self) return;
  // Its thread sleeps, waits for a change, or runs another list.
  member.changed.Signal();
  self.execution.group().Change();
}

GroupThreads::Member* GroupThreads::Take(const SignalGroup& group) {
  for (Member* member : members_)
    if (member->is_aside && &member->group() == &group && !member->execution.IsHeld())
      return member;
  return nullptr;
}

int GroupThreads::Awake(const SignalGroup& group) const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [&](const Member* m) {
    return m->is_awake && &m->group() == &group;
  }));
}

void GroupThreads::Sleep(Member& self) {
  KILN_CHECK(self.is_awake);
  self.is_awake = false;
  KILN_VALIDATE(*this, members_.size());
  while (!self.has_ended && !self.is_awake) self.changed.Wait(&mutex_);
  self.is_awake = true;
}

void GroupThreads::Leave(const Member& self) {
  const SignalGroup& group = self.group();
  KILN_CHECK(self.has_ended && self.is_awake);
  const auto found = std::find(members_.begin(), members_.end(), &self);
  KILN_CHECK(found != members_.end());
  members_.erase(found);
  // The list that this thread has just set aside may already be able to continue, but the awake
  // threads may have looked before it was set aside.
  self.execution.group().Change();
  if (Awake(group) < cores_) {
    for (Member* member : members_) {
      if (&member->group() != &group || member->is_awake) continue;
      member->is_awake = true;
      member->changed.Signal();
      break;
    }
  }
  KILN_VALIDATE(*this, members_.size());
}

}  // namespace kiln::drivers::cpu
