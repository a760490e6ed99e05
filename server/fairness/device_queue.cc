#include "server/fairness/device_queue.h"

#include <cmath>
#include <set>
#include <vector>

#include "proto/check/check.h"

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
  KILN_CHECK_EQ(entry.item, first->item);
  const Start start{next_ticket_++, entry.flow, entry.item, entry.cost};
  running_.emplace(start.ticket, Running{start.flow, start.cost, start.cost});
  seconds_in_flight_ += start.cost;
  KILN_VALIDATE(*this, entries());
  return start;
}

bool DeviceQueue::PutBack(const Start& start, bool hold) {
  const size_t erased = running_.erase(start.ticket);
  KILN_CHECK_EQ(erased, 1) << "ticket " << start.ticket << " was not in flight";
  seconds_in_flight_ -= start.cost;
  flows_.Correct(start.flow, start.cost, 0);
  KILN_VALIDATE(*this, entries());
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
  KILN_CHECK(!parked.alone) << "ticket " << ticket << " is on the device";
  running_.erase(found);
  Forget(parked.predicted);
  parked_.emplace(ticket, parked);
  flows_.Block(parked.flow);
  KILN_VALIDATE(*this, entries());
}

void DeviceQueue::Unpark(int64_t ticket) {
  const auto found = parked_.find(ticket);
  if (found == parked_.end()) return;
  const bool is_new = running_.emplace(ticket, found->second).second;
  KILN_CHECK(is_new) << "ticket " << ticket << " is in flight and parked";
  seconds_in_flight_ += found->second.predicted;
  flows_.Unblock(found->second.flow);
  parked_.erase(found);
  KILN_VALIDATE(*this, entries());
}

void DeviceQueue::KeepAlone(int64_t ticket) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  found->second.alone = true;
  flows_.Block(found->second.flow);
  KILN_VALIDATE(*this, entries());
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
  KILN_CHECK(!running_.contains(ticket) && !parked_.contains(ticket)) << "ticket " << ticket;
  KILN_VALIDATE(*this, entries());
  return true;
}

std::vector<int64_t> DeviceQueue::InFlight() const {
  std::vector<int64_t> tickets;
  for (const auto& [ticket, list] : running_) tickets.push_back(ticket);
  return tickets;
}

std::vector<int64_t> DeviceQueue::Parked() const {
  std::vector<int64_t> tickets;
  for (const auto& [ticket, list] : parked_) tickets.push_back(ticket);
  return tickets;
}

void DeviceQueue::Validate() const {
  // Sums of many small numbers drift.
  constexpr double kDrift = 1e-5;
  double seconds = 0;
  std::set<FlowId> blocked;
  // Nothing else of a flow starts while one of its tickets blocks it, so it has only one such
  // ticket.
  const auto block = [&](int64_t ticket, FlowId flow) {
    if (!flows_.Knows(flow)) return;
    const bool is_first = blocked.insert(flow).second;
    KILN_CHECK(is_first) << "ticket " << ticket << " blocks flow " << flow << " as well";
  };
  for (const auto& [ticket, list] : running_) {
    KILN_CHECK_LT(ticket, next_ticket_);
    KILN_CHECK(!parked_.contains(ticket)) << "ticket " << ticket;
    seconds += list.predicted;
    if (list.alone) block(ticket, list.flow);
  }
  for (const auto& [ticket, list] : parked_) {
    KILN_CHECK_LT(ticket, next_ticket_);
    KILN_CHECK(!list.alone) << "ticket " << ticket;
    block(ticket, list.flow);
  }
  KILN_CHECK(blocked == flows_.Blocked()) << blocked.size() << " flows are blocked by a ticket";
  KILN_CHECK_LE(std::abs(seconds - seconds_in_flight_), kDrift * (1 + seconds));
}

}  // namespace kiln::fairness
