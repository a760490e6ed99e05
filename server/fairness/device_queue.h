// What a device gets next, and how much of it at once: the fair queue, and what is in flight. Pure
// and clock-free, so that the dispatcher and the tests' simulator run the same policy; not
// thread-safe.
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

// A list is handed to the device if none is in flight, or if together with what is in flight it is
// predicted to take at most half a slice (the usual one, where slice_seconds is infinity). Of short
// lists there are enough for the device to go on while the threads that tell of their ends and
// start others wait for a core.
//
// What takes longer than a slice ends with it. Devices that yield (drivers::Device::yields) ask at
// its end whether the list goes on (GoesOn): it does while nothing else waits. A list that may take
// longer than a slice (MayTakeASlice) is in flight there alone, and predicted to take one. For
// other devices it is cut into pieces of half a slice beforehand, by what it is predicted to take.
// So nobody has the device for longer than a slice and one task of a kernel's grid while others
// wait, as far as predictions are right where the device does not yield.
//
// A user who has had less than the others, by a slice at least, waits for what is in flight: a list
// of one slice, or several of half of one together. Then comes their list, however many others
// wait. Who has had as much as the others waits for their turn (fair_queue.h).
struct QueueLimits {
  int max_in_flight = 512;
  double slice_seconds = 0.010;

  double piece_seconds() const { return slice_seconds / 2; }
  // What FairQueue lets those begin with who were idle.
  double credit_seconds() const;
};

// Whether a run may take longer than a slice that is predicted to take so many seconds. They last
// `differs_by` times as long as those before them at most.
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

  // The list that the device gets now; nothing if none waits or none fits. It counts as in flight
  // until Finished or Refused.
  std::optional<Start> Next();
  // Another piece of the item in `start` follows, before anything else of its flow. False if the
  // flow is gone.
  bool Continue(const Start& start, double cost) {
    return flows_.PushFront(start.flow, start.item, cost);
  }
  // The same for a ticket in flight or parked: its next piece is this item. False if it or its flow
  // is gone.
  bool Continue(int64_t ticket, Item item, double cost);
  // What was started cannot run yet: it goes back. With `hold` its flow waits until something has
  // ended. False if the flow is gone.
  bool PutBack(const Start& start, bool hold);
  // What was started waits for other devices (gangs): its turn here has come and is paid for, but
  // it takes nothing of the device, which goes on with other flows' work; its own flow's waits.
  void Park(int64_t ticket);
  // It runs now, with the others.
  void Unpark(int64_t ticket);
  // What was started may end early: until it has ended nothing else of its flow is started, which
  // would overtake its rest. Nothing happens if it has ended.
  void KeepAlone(int64_t ticket);
  // What was started has run for `seconds`, and its slice is over. True: nothing else waits, so
  // that it goes on, and its flow is charged for another slice. False: it is to end, as it is when
  // its flow is gone.
  bool GoesOn(int64_t ticket, double seconds);
  // It took `seconds` on the device. False if the ticket is unknown.
  bool Finished(int64_t ticket, double seconds);
  // It never reached the device, parked or not.
  void Refused(int64_t ticket) { Finished(ticket, 0); }

  // Without what is parked.
  int64_t in_flight() const { return static_cast<int64_t>(running_.size()); }
  // As predicted.
  double seconds_in_flight() const { return seconds_in_flight_; }

 private:
  struct Running {
    FlowId flow = 0;
    double predicted = 0;  // to be in flight for so long
    double charged = 0;
    bool alone = false;
  };
  void Forget(double predicted);
  bool Fits(double cost) const;

  const QueueLimits limits_;
  FairQueue flows_;
  absl::flat_hash_map<int64_t, Running> running_;
  absl::flat_hash_map<int64_t, Running> parked_;  // at most one of a flow
  int64_t next_ticket_ = 1;
  double seconds_in_flight_ = 0;
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_DEVICE_QUEUE_H_
