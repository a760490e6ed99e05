#include "server/fairness/device_queue.h"

#include <cmath>

namespace kiln::fairness {

double QueueLimits::credit_seconds() const {
  return std::isfinite(slice_seconds) ? slice_seconds : QueueLimits().slice_seconds;
}

bool MayTakeASlice(double predicted_seconds, const QueueLimits& limits, double differs_by) {
  return predicted_seconds * differs_by > limits.slice_seconds;
}

bool DeviceQueue::Fits(double cost) const {
  const int64_t count = in_flight();
  if (count == 0) return true;
  // If programs are not cut (an infinite slice), everything queued would fit, so use the usual
  // slice.
  const bool is_cut = std::isfinite(limits_.slice_seconds);
  const double seconds_max = is_cut ? limits_.piece_seconds() : QueueLimits().piece_seconds();
  return count < limits_.in_flight_max && seconds_in_flight_ + cost <= seconds_max;
}

std::optional<DeviceQueue::Start> DeviceQueue::Next() {
  const auto first = flows_.First();
  if (!first || !Fits(first->cost)) return std::nullopt;
  const FairQueue::Entry entry = *flows_.Pop();
  const Start start{next_ticket_++, entry.flow, entry.item, entry.cost};
  running_.emplace(start.ticket, Running{start.flow, start.cost, start.cost});
  seconds_in_flight_ += start.cost;
  return start;
}

bool DeviceQueue::PutBack(const Start& start, bool hold) {
  running_.erase(start.ticket);
  seconds_in_flight_ -= start.cost;
  flows_.Correct(start.flow, start.cost, 0);
  if (!flows_.PushFront(start.flow, start.item, start.cost)) return false;
  if (hold) flows_.Hold(start.flow);
  return true;
}

bool DeviceQueue::Continue(int64_t ticket, Item item, double cost) {
  for (const auto* some : {&running_, &parked_})
    if (const auto found = some->find(ticket); found != some->end())
      return flows_.PushFront(found->second.flow, item, cost);
  return false;
}

void DeviceQueue::Park(int64_t ticket) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  const Running parked = found->second;
  running_.erase(found);
  Forget(parked.predicted);
  parked_.emplace(ticket, parked);
  flows_.Block(parked.flow);
}

void DeviceQueue::Unpark(int64_t ticket) {
  const auto found = parked_.find(ticket);
  if (found == parked_.end()) return;
  running_.emplace(ticket, found->second);
  seconds_in_flight_ += found->second.predicted;
  flows_.Unblock(found->second.flow);
  parked_.erase(found);
}

void DeviceQueue::KeepAlone(int64_t ticket) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  found->second.alone = true;
  flows_.Block(found->second.flow);
}

bool DeviceQueue::GoesOn(int64_t ticket, double seconds) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return true;
  // Lists run in order, so those in flight come after this one.
  if (flows_.First() || in_flight() > 1) return false;
  Running& list = found->second;
  if (!flows_.GoOn(list.flow, list.charged, seconds, limits_.slice_seconds)) return false;
  list.charged = seconds + limits_.slice_seconds;
  return true;
}

void DeviceQueue::Forget(double predicted) {
  seconds_in_flight_ -= predicted;
  // Sums of many small numbers drift.
  if (running_.empty()) seconds_in_flight_ = 0;
}

bool DeviceQueue::Finished(int64_t ticket, double seconds) {
  Unpark(ticket);
  const auto found = running_.find(ticket);
  if (found == running_.end()) return false;
  const Running ended = found->second;
  running_.erase(found);
  flows_.Correct(ended.flow, ended.charged, seconds);
  if (ended.alone) flows_.Unblock(ended.flow);
  Forget(ended.predicted);
  flows_.ReleaseHeld();
  return true;
}

}  // namespace kiln::fairness
