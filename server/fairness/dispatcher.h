// The edge of the fair queue: threads, time and one device. Keeps a few lists in flight, so that
// the device never runs dry and a newcomer still waits only for those few.
#ifndef KILN_SERVER_FAIRNESS_DISPATCHER_H_
#define KILN_SERVER_FAIRNESS_DISPATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/fairness/fair_queue.h"

namespace kiln::fairness {

// One command list that waits for its device.
class Work {
 public:
  virtual ~Work() = default;
  // Expected time on the device in seconds.
  virtual double predicted_seconds() const = 0;
  // Hands the list to the device. OK: Dispatcher::Finished(ticket, …) will be called once, possibly
  // before this returns. Otherwise the work has failed and Fail is called. Called from one thread
  // at a time, in the queue's order.
  virtual absl::Status Submit(int64_t ticket, absl::Duration waited) = 0;
  // What the log calls it.
  virtual std::string label() const = 0;
  // It will not run.
  virtual void Fail(const absl::Status& status) = 0;
};

struct DispatcherLimits {
  // Always up to `min_in_flight` lists, more while they are predicted to take less than
  // `seconds_in_flight` together.
  int min_in_flight = 2;
  int max_in_flight = 32;
  double seconds_in_flight = 0.001;
};

// Thread-safe.
class Dispatcher {
 public:
  // The log says `device` of what is queued here.
  Dispatcher(std::string device, std::function<absl::Time()> now, DispatcherLimits limits = {})
      : device_(std::move(device)), now_(std::move(now)), limits_(limits) {}

  FairQueue::FlowId AddFlow(const std::string& user, double weight) ABSL_LOCKS_EXCLUDED(mutex_);
  // Work that waits in the flow fails with CANCELLED.
  void RemoveFlow(FairQueue::FlowId flow) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls Submit or Fail of this and other work, maybe on this thread, before or after it returns:
  // hold no lock that they take.
  void Enqueue(FairQueue::FlowId flow, std::shared_ptr<Work> work) ABSL_LOCKS_EXCLUDED(mutex_);
  // A submitted list ended after `seconds` on the device.
  void Finished(int64_t ticket, double seconds) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on nothing that waits is submitted; what is in flight goes on. What still waits is
  // failed by RemoveFlow or Stop.
  void Suspend() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on work fails with `reason`, that which waits included; what is in flight goes on.
  void Stop(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until nothing is in flight; false if `timeout` passes first.
  bool WaitIdle(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // Work that waits.
  int64_t queued() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Seconds of device time of everything that has ended.
  double device_seconds() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    std::shared_ptr<Work> work;
    absl::Time since;
  };
  // An event for the log.
  struct Queued {
    int64_t ticket = 0;
    std::string label;
    double predicted = 0;
    int64_t queued = 0;
  };
  struct Running {
    FairQueue::FlowId flow = 0;
    double predicted = 0;
  };

  absl::Status Queue(FairQueue::FlowId flow, const std::shared_ptr<Work>& work)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts what fits, and writes to the log what has happened. One thread at a time does this, so
  // that lists start, and the log tells of them, in the queue's order; the others leave their work
  // to it.
  void SubmitWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  void SubmitWaitingAndUnlock() ABSL_UNLOCK_FUNCTION(mutex_);
  bool Fits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void LogQueued(const std::vector<Queued>& events) const;
  void LogChosen(const FairQueue::Entry& entry, const Work& work, absl::Duration waited,
                 int64_t queued, int64_t in_flight) const;

  const std::string device_;
  const std::function<absl::Time()> now_;
  const DispatcherLimits limits_;
  mutable absl::Mutex mutex_;
  FairQueue queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, Running> running_ ABSL_GUARDED_BY(mutex_);
  // No longer than what was enqueued while one list was handed to the device.
  std::vector<Queued> unlogged_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  double seconds_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  double device_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  // One thread at a time hands lists to the device.
  bool submitting_ ABSL_GUARDED_BY(mutex_) = false;
  bool suspended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_DISPATCHER_H_
