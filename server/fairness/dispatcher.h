// Connects the fair queue with threads, time and one device. DeviceQueue decides which list the
// device gets next, and how much of it at once.
#ifndef KILN_SERVER_FAIRNESS_DISPATCHER_H_
#define KILN_SERVER_FAIRNESS_DISPATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/fairness/device_queue.h"
#include "server/fairness/fair_queue.h"

namespace kiln::fairness {

// Work that waits for its device: one command list, or several that are handed over in order, with
// other users' lists in between.
class Work {
 public:
  enum class Handed {
    kAll,     // nothing of it is left
    kAlone,   // the same, but the list may end early (Dispatcher::GoesOn): the rest of the flow
              // waits
    kSome,    // Submit is called again when its turn has come
    kNoRoom,  // nothing: it needs memory held by other work that has begun and is not completely
              // handed over. Submit is called again once a list has ended.
  };

  virtual ~Work() = default;
  // Predicted seconds on the device of the next list.
  virtual double predicted_seconds() const = 0;
  // Hands the next list to the device. Except for kNoRoom, Dispatcher::Finished(ticket, …) must
  // then be called once, possibly before this returns. On an error the work has failed, and Fail is
  // called. Called by one thread at a time, in the queue's order.
  virtual absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) = 0;
  // Fails the work with `why`, even if it is partly handed over, unless it has ended. Lists on the
  // device continue until the device is told (drivers::Device::StopUnwanted). Thread-safe.
  virtual void Stop(const absl::Status& why) {}
  // False: it was cancelled or has failed, so DropUnwanted may drop it.
  virtual bool is_wanted() const { return true; }
  // False: it is the daemon's own, and says nothing about whether users need the device.
  virtual bool is_users() const { return true; }
  // Its name in the log.
  virtual std::string label() const = 0;
  // The part that was not handed over will not run. Called at most once.
  virtual void Fail(const absl::Status& status) = 0;
};

// Whether users need a device.
struct UsersWork {
  bool is_there = false;  // some of it waits or is on the device
  absl::Time last;        // when some of it last came or ended; at first, when the queue was made
};

// Thread-safe.
class Dispatcher {
 public:
  // `device`: its name in the log.
  Dispatcher(std::string device, std::function<absl::Time()> now, QueueLimits limits = {})
      : device_(std::move(device)),
        now_(std::move(now)),
        limits_(limits),
        queue_(limits),
        last_users_work_(now_()) {}

  const QueueLimits& limits() const { return limits_; }

  FairQueue::FlowId AddFlow(const std::string& user, double weight,
                            Priority priority = Priority::kInteractive) ABSL_LOCKS_EXCLUDED(mutex_);
  // Fails work of the flow that is not completely handed over with CANCELLED.
  void RemoveFlow(FairQueue::FlowId flow) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the user's share, relative to other users', if the user has a flow.
  void SetWeight(const std::string& user, double weight) ABSL_LOCKS_EXCLUDED(mutex_);
  // As RemoveFlow, only for work that is not wanted any more (Work::is_wanted); the flow remains.
  void DropUnwanted(FairQueue::FlowId flow) ABSL_LOCKS_EXCLUDED(mutex_);

  // May call Submit or Fail of this and other work, possibly on this thread, before or after it
  // returns. Requires: the caller holds no lock that they take.
  void Enqueue(FairQueue::FlowId flow, std::shared_ptr<Work> work) ABSL_LOCKS_EXCLUDED(mutex_);
  // A submitted list ended after `seconds` on the device.
  void Finished(int64_t ticket, double seconds) ABSL_LOCKS_EXCLUDED(mutex_);

  // Called when a list has run for `seconds` and its slice is over. True: it continues. False:
  // others wait, so it has to end early, and Continue must be called before Finished. Fast; called
  // on a device's thread.
  bool GoesOn(int64_t ticket, double seconds) ABSL_LOCKS_EXCLUDED(mutex_);

  // For joint work (submission_order.h), within its Submit: the ticket's turn has come here, but
  // not on all devices. It is no longer in flight, and the rest of its flow waits. `has_begun`: an
  // earlier list of the work has begun, so it holds memory that others may wait for.
  void Park(int64_t ticket, bool has_begun) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether work that has not begun may still begin.
  bool Begins() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The ticket is in flight again, and Finished will be called for it. Does not start other lists.
  void Unpark(int64_t ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  // Queues `work`, the next piece of the same work after the ticket's list, before the rest of its
  // flow; it is not the work's first piece. Call this before Unpark, or within Submit, which then
  // returns kAll; or when the list has ended early. Returns false, without queueing, if the flow is
  // gone.
  bool Continue(int64_t ticket, std::shared_ptr<Work> work, double predicted_seconds)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Work that found no memory competes again from now on, without waiting for a list to end, since
  // others would then take the memory. Does not start lists.
  void ReleaseHeld() ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts what can start. Calls Submit of work. Requires: the caller holds no lock.
  void LookAgain() ABSL_LOCKS_EXCLUDED(mutex_) { SubmitWaiting(); }

  // Calls Work::Stop of all work that is in flight or parked.
  void StopInFlight(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on waiting work is not begun; work that has begun runs to its end. Waiting work is
  // failed by RemoveFlow or Stop.
  void Suspend() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on work fails with `reason`, including waiting work; work that has begun runs to its
  // end.
  void Stop(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until nothing is in flight and no begun work is left to hand over; returns false if
  // `timeout` passes first.
  bool WaitIdle(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // `observer` is called without a lock each time that users' work comes, before it is started. It
  // returns quickly, and calls nothing of this object. Requires: nothing was queued yet.
  void SetUsersWorkObserver(std::function<void()> observer) {
    on_users_work_ = std::move(observer);
  }
  UsersWork users_work() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The number of waiting items.
  int64_t queued() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the lists on the device.
  double predicted_seconds_in_flight() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Total device time of all ended lists.
  double device_seconds() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    std::shared_ptr<Work> work;
    absl::Time since;
    bool begun = false;  // a part of it was handed over
  };
  // A list in flight, or a parked one.
  struct HandedOver {
    std::weak_ptr<Work> work;
    bool is_users = false;
  };
  // An event for the log.
  struct Queued {
    FairQueue::Item item = 0;
    std::string label;
    double predicted = 0;
    int64_t queued = 0;
  };
  absl::Status Queue(FairQueue::FlowId flow, const std::shared_ptr<Work>& work)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts what fits, and logs what happened. Only one thread at a time does this, so that lists
  // start, and log lines appear, in the queue's order; other threads leave their work to it.
  void SubmitWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  void SubmitWaitingAndUnlock() ABSL_UNLOCK_FUNCTION(mutex_);
  // The item that starts now, if any.
  std::optional<DeviceQueue::Start> NextStart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Submits a started item; `waiting` is Take's result for it.
  void SubmitStarted(const DeviceQueue::Start& start, Waiting waiting) ABSL_LOCKS_EXCLUDED(mutex_);
  // Updates the state after Submit, under the lock. Returns OK if the work remains, otherwise the
  // error that it fails with.
  absl::Status Settle(const DeviceQueue::Start& start, const absl::StatusOr<Work::Handed>& handed,
                      double next_seconds, Waiting* waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The list has ended, or never reached the device.
  void ForgetHanded(int64_t ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Waiting Take(FairQueue::Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutBack(FairQueue::Item item, Waiting waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails work that has left the queue, and starts work that may have waited for its memory.
  void Drop(std::vector<Waiting> dropped, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t entries() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return waiting_.size() + handed_.size() + parked_begun_.size();
  }
  // Holds whenever no thread holds the lock.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  void LogQueued(const std::vector<Queued>& events) const;
  void LogChosen(const DeviceQueue::Start& start, const Work& work, absl::Duration waited,
                 int64_t queued, int64_t in_flight) const;

  const std::string device_;
  const std::function<absl::Time()> now_;
  const QueueLimits limits_;
  mutable absl::Mutex mutex_;
  DeviceQueue queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;                                // of waiting_
  absl::flat_hash_set<int64_t> parked_begun_ ABSL_GUARDED_BY(mutex_);        // tickets
  absl::flat_hash_map<int64_t, HandedOver> handed_ ABSL_GUARDED_BY(mutex_);  // by ticket
  int64_t users_work_ ABSL_GUARDED_BY(mutex_) = 0;  // of waiting_ and handed_
  absl::Time last_users_work_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_users_work_;  // may be null
  // Bounded by the work that is enqueued while one list is handed to the device.
  std::vector<Queued> unlogged_ ABSL_GUARDED_BY(mutex_);
  FairQueue::Item next_item_ ABSL_GUARDED_BY(mutex_) = 1;
  double device_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  // True while a thread hands lists to the device.
  bool submitting_ ABSL_GUARDED_BY(mutex_) = false;
  bool suspended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_DISPATCHER_H_
