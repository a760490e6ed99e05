// Decides which list a device gets next, and how much of it at once: the fair queue, and the lists
// in flight. Pure, without a clock, so that the dispatcher and the tests' simulator run the same
// policy. Not thread-safe.
#ifndef KILN_SERVER_FAIRNESS_DEVICE_QUEUE_H_
#define KILN_SERVER_FAIRNESS_DEVICE_QUEUE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/fairness/fair_queue.h"

namespace kiln::fairness {

// A list is handed to the device if none is in flight, or if it and those in flight are together
// predicted to take at most half a slice (half of the usual slice if slice_seconds is infinite).
// This keeps enough short lists in flight for the device to continue while the threads that report
// completions and start lists wait for a core.
//
// Work that takes longer than a slice stops at its end. Devices that yield
// (drivers::Device::yields) ask at the end of a slice whether the list continues (GoesOn): it does
// while nothing else waits. A list that may take longer than a slice (MayTakeASlice) is the only
// one in flight there, and is predicted to take one slice. For other devices it is cut into pieces
// of half a slice beforehand, by its predicted time. So while others wait, no user has the device
// for longer than a slice and one task of a kernel's grid; on a device that does not yield, as far
// as predictions are right.
//
// A user who has had less time than the others, by at least a slice, waits only for what is in
// flight: a list of one slice, or several lists that take half a slice together. Their list comes
// next, however many others wait. A user who has had as much as the others waits for their turn
// (fair_queue.h).
struct QueueLimits {
  int in_flight_max = 512;
  double slice_seconds = 0.010;

  double piece_seconds() const { return slice_seconds / 2; }
  // The credit with which FairQueue lets idle users begin.
  double credit_seconds() const;
};

// Whether a run with this predicted time may take longer than a slice. Runs are assumed to take at
// most `differs_by` times as long as earlier ones.
bool MayTakeASlice(double predicted_seconds, const QueueLimits& limits, double differs_by = 4);

class DeviceQueue {
 public:
  using FlowId = FairQueue::FlowId;
  using Item = FairQueue::Item;
  struct Start {
    int64_t ticket = 0;
    FlowId flow = 0;
    Item item = 0;
    double cost = 0;
  };

  explicit DeviceQueue(QueueLimits limits) : limits_(limits), flows_(limits.credit_seconds()) {}

  FairQueue& flows() { return flows_; }
  const FairQueue& flows() const { return flows_; }

  // Returns the list that the device gets now, or nothing if none waits or none fits. It counts as
  // in flight until Finished or Refused.
  std::optional<Start> Next();
  // Queues another piece of the item in `start`, before anything else of its flow. Returns false if
  // the flow is gone.
  bool Continue(const Start& start, double cost) {
    return flows_.PushFront(start.flow, start.item, cost);
  }
  // The same for a ticket in flight or parked, with `item` as its next piece. Returns false if it
  // or its flow is gone.
  bool Continue(int64_t ticket, Item item, double cost);
  // Returns a started item, which cannot run yet, to the queue. With `hold` its flow waits until
  // something has ended. Returns false if the flow is gone.
  bool PutBack(const Start& start, bool hold);
  // The ticket waits for other devices (joint work). Its turn on this device has come and is
  // charged, but it does not occupy the device, which continues with other flows' work; its own
  // flow waits.
  void Park(int64_t ticket);
  // The ticket is in flight again.
  void Unpark(int64_t ticket);
  // The ticket may end early: until it has ended nothing else of its flow is started, which would
  // overtake its rest. Does nothing if it has ended.
  void KeepAlone(int64_t ticket);
  // Call when the ticket has run for `seconds` and its slice is over. True: nothing else waits, so
  // it continues and its flow is charged for another slice. False: it has to end, also because its
  // flow is gone.
  bool GoesOn(int64_t ticket, double seconds);
  // The ticket took `seconds` on the device. Returns false if the ticket is unknown.
  bool Finished(int64_t ticket, double seconds);
  // The ticket, parked or not, never reached the device.
  void Refused(int64_t ticket) { Finished(ticket, 0); }

  // For the checks of the tables that use this: the tickets in flight, and the parked ones.
  std::vector<int64_t> InFlight() const;
  std::vector<int64_t> Parked() const;
  void Validate() const;

  // Parked tickets are not counted.
  int64_t in_flight() const { return static_cast<int64_t>(running_.size()); }
  // Predicted seconds of the lists in flight.
  double seconds_in_flight() const { return seconds_in_flight_; }

 private:
  struct Running {
    FlowId flow = 0;
    double predicted = 0;  // seconds in flight
    double charged = 0;
    bool alone = false;
  };
  size_t entries() const { return running_.size() + parked_.size(); }
  void Forget(double predicted);
  bool Fits(double cost) const;

  const QueueLimits limits_;
  FairQueue flows_;
  absl::flat_hash_map<int64_t, Running> running_;
  absl::flat_hash_map<int64_t, Running> parked_;  // at most one per flow
  int64_t next_ticket_ = 1;
  double seconds_in_flight_ = 0;
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_DEVICE_QUEUE_H_
