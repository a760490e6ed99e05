// The edge of the fair queue: threads, time and one device. What the device gets next, and how much
// of it at once, is DeviceQueue's to say.
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

// What waits for its device: one command list, or several that are handed over in order, so that
// others' lists come in between.
class Work {
 public:
  enum class Handed {
    kAll,     // nothing of it is left
    kAlone,   // likewise, but the list may end early (Dispatcher::GoesOn): the rest of the flow
              // waits
    kSome,    // Submit is called again, when its turn has come
    kNoRoom,  // nothing: it needs memory that other work holds which has begun and not been handed
              // over whole. Submit is called again once a list has ended.
  };

  virtual ~Work() = default;
  // Expected time on the device of what is handed over next, in seconds.
  virtual double predicted_seconds() const = 0;
  // Hands the next list to the device. Unless kNoRoom, Dispatcher::Finished(ticket, …) will be
  // called once, possibly before this returns. An error: the work has failed and Fail is called.
  // Called from one thread at a time, in the queue's order.
  virtual absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) = 0;
  // It fails with `why`, however much of it was handed over, unless it has ended. What is on the
  // device goes on until the device is told (drivers::Device::StopUnwanted). For any thread.
  virtual void Stop(const absl::Status& why) {}
  // False: nobody needs it any more, so that DropUnwanted may drop it.
  virtual bool is_wanted() const { return true; }
  // What the log calls it.
  virtual std::string label() const = 0;
  // What has not been handed over will not run. Called at most once.
  virtual void Fail(const absl::Status& status) = 0;
};

// Thread-safe.
class Dispatcher {
 public:
  // The log says `device` of what is queued here.
  Dispatcher(std::string device, std::function<absl::Time()> now, QueueLimits limits = {})
      : device_(std::move(device)), now_(std::move(now)), limits_(limits), queue_(limits) {}

  const QueueLimits& limits() const { return limits_; }

  FairQueue::FlowId AddFlow(const std::string& user, double weight,
                            Priority priority = Priority::kInteractive) ABSL_LOCKS_EXCLUDED(mutex_);
  // Work in the flow that has not been handed over whole fails with CANCELLED.
  void RemoveFlow(FairQueue::FlowId flow) ABSL_LOCKS_EXCLUDED(mutex_);
  // The user's share from now on, relative to other users', if there is a flow of the user's.
  void SetWeight(const std::string& user, double weight) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same as RemoveFlow for what is not wanted any more; the flow stays.
  void DropUnwanted(FairQueue::FlowId flow) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls Submit or Fail of this and other work, maybe on this thread, before or after it returns:
  // hold no lock that they take.
  void Enqueue(FairQueue::FlowId flow, std::shared_ptr<Work> work) ABSL_LOCKS_EXCLUDED(mutex_);
  // A submitted list ended after `seconds` on the device.
  void Finished(int64_t ticket, double seconds) ABSL_LOCKS_EXCLUDED(mutex_);

  // Asked when a list has run for `seconds` and its slice is over. True: it goes on. False: others
  // wait, so that it is to end early; Continue comes before Finished then. Cheap. For a device's
  // thread.
  bool GoesOn(int64_t ticket, double seconds) ABSL_LOCKS_EXCLUDED(mutex_);

  // For work on several devices at once (gang_order.h), within its Submit: the ticket's turn has
  // come here, but not everywhere. It is in flight no longer, and the rest of its flow waits.
  // `has_begun`: not with this list, so that it holds what others may wait for.
  void Park(int64_t ticket, bool has_begun) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether work that has not begun may still begin.
  bool Begins() const ABSL_LOCKS_EXCLUDED(mutex_);
  // It is in flight again, and will be Finished. Without a look at what may start behind it.
  void Unpark(int64_t ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  // What comes of the same work behind the ticket's list, before the rest of its flow: `work`, of
  // which this is not the first piece. Before it is unparked, or within its Submit, which then
  // returns kAll; or when the list has ended early. False if its flow is gone; then nothing comes.
  bool Continue(int64_t ticket, std::shared_ptr<Work> work, double predicted_seconds)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What has found no room competes again from here on: it need not wait until a list ends, behind
  // which others would have the room. Without a look.
  void ReleaseHeld() ABSL_LOCKS_EXCLUDED(mutex_);
  // That look. Calls Submit of work; the caller holds no lock.
  void LookAgain() ABSL_LOCKS_EXCLUDED(mutex_) { SubmitWaiting(); }

  // Work::Stop of all of which the device has something or which is parked.
  void StopInFlight(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on nothing that waits is begun; what has begun goes on to its end. What still waits is
  // failed by RemoveFlow or Stop.
  void Suspend() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on work fails with `reason`, that which waits included; what has begun goes on to its
  // end.
  void Stop(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until nothing is in flight and nothing has begun that is not handed over whole; false if
  // `timeout` passes first.
  bool WaitIdle(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // Work that waits.
  int64_t queued() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of what is on the device now.
  double predicted_seconds_in_flight() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Seconds of device time of everything that has ended.
  double device_seconds() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    std::shared_ptr<Work> work;
    absl::Time since;
    bool begun = false;  // and there is more
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
  // Starts what fits, and writes to the log what has happened. One thread at a time does this, so
  // that lists start, and the log tells of them, in the queue's order; the others leave their work
  // to it.
  void SubmitWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  void SubmitWaitingAndUnlock() ABSL_UNLOCK_FUNCTION(mutex_);
  // What starts now, if anything does.
  std::optional<DeviceQueue::Start> NextStart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Submits what was started; `waiting` is what Take has returned for it.
  void SubmitStarted(const DeviceQueue::Start& start, Waiting waiting) ABSL_LOCKS_EXCLUDED(mutex_);
  // What becomes of it now, under the lock: empty if the work stays, otherwise why it fails.
  absl::Status Settle(const DeviceQueue::Start& start, const absl::StatusOr<Work::Handed>& handed,
                      double next_seconds, Waiting* waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Waiting Take(FairQueue::Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutBack(FairQueue::Item item, Waiting waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails what has left the queue, and goes on with what may have waited for its memory.
  void Drop(std::vector<Waiting> dropped, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  void LogQueued(const std::vector<Queued>& events) const;
  void LogChosen(const DeviceQueue::Start& start, const Work& work, absl::Duration waited,
                 int64_t queued, int64_t in_flight) const;

  const std::string device_;
  const std::function<absl::Time()> now_;
  const QueueLimits limits_;
  mutable absl::Mutex mutex_;
  DeviceQueue queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;                          // of those that wait
  absl::flat_hash_set<int64_t> parked_begun_ ABSL_GUARDED_BY(mutex_);  // tickets
  // By ticket; as many as are in flight.
  absl::flat_hash_map<int64_t, std::weak_ptr<Work>> handed_ ABSL_GUARDED_BY(mutex_);
  // No longer than what was enqueued while one list was handed to the device.
  std::vector<Queued> unlogged_ ABSL_GUARDED_BY(mutex_);
  FairQueue::Item next_item_ ABSL_GUARDED_BY(mutex_) = 1;
  double device_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  // One thread at a time hands lists to the device.
  bool submitting_ ABSL_GUARDED_BY(mutex_) = false;
  bool suspended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_DISPATCHER_H_
