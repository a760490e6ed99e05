#include "server/fairness/fair_queue.h"

#include <algorithm>

namespace kiln::fairness {

void TagOrder::Activate(int64_t id) {
  Flow& flow = flows_[id];
  if (flow.waiting) return;
  flow.waiting = true;
  // An idle flow's old tag would let it run alone until it has caught up with the others.
  flow.tag = std::max(flow.tag, virtual_time_);
  flow.since = arrivals_++;
  waiting_.insert(KeyOf(id, flow));
}

void TagOrder::Deactivate(int64_t id) {
  Flow& flow = flows_[id];
  if (!flow.waiting) return;
  waiting_.erase(KeyOf(id, flow));
  flow.waiting = false;
}

std::optional<int64_t> TagOrder::First() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->second;
}

void TagOrder::Charge(int64_t id, double seconds) {
  Flow& flow = flows_[id];
  // The set is ordered by tag, so a flow leaves it while its tag changes.
  if (flow.waiting) waiting_.erase(KeyOf(id, flow));
  flow.tag += seconds / flow.weight;
  // Served now: among equals it goes to the back.
  flow.since = arrivals_++;
  if (flow.waiting) waiting_.insert(KeyOf(id, flow));
}

// Never back: a correction may have moved this flow's tag behind what was served before.
void TagOrder::Serve(int64_t id) { virtual_time_ = std::max(virtual_time_, flows_[id].tag); }

void TagOrder::Forget(int64_t id) {
  Deactivate(id);
  flows_.erase(id);
}

FairQueue::FlowId FairQueue::AddFlow(const std::string& user, double weight) {
  auto [known, is_new] = user_ids_.try_emplace(user, 0);
  if (is_new) {
    known->second = next_id_++;
    users_[known->second].name = user;
  }
  const int64_t user_id = known->second;
  users_order_.SetWeight(user_id, weight);
  User& entry = users_[user_id];
  ++entry.flows;
  const FlowId flow = next_id_++;
  entry.sessions.SetWeight(flow, 1);
  flows_[flow].user = user_id;
  return flow;
}

std::vector<FairQueue::Item> FairQueue::RemoveFlow(FlowId flow) {
  std::vector<Item> left;
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return left;
  for (const auto& [item, cost] : found->second.items) left.push_back(item);
  size_ -= static_cast<int64_t>(left.size());
  const int64_t user_id = found->second.user;
  flows_.erase(found);
  User& user = users_[user_id];
  user.sessions.Forget(flow);
  user.waiting -= static_cast<int64_t>(left.size());
  if (user.waiting == 0) users_order_.Deactivate(user_id);
  // Users come and go with their sessions; keeping them all would grow the tables without bound.
  if (--user.flows == 0) {
    user_ids_.erase(user.name);
    users_.erase(user_id);
    users_order_.Forget(user_id);
  }
  return left;
}

bool FairQueue::Push(FlowId flow, Item item, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return false;
  Flow& entry = found->second;
  User& user = users_.at(entry.user);
  entry.items.emplace_back(item, cost);
  ++user.waiting;
  ++size_;
  user.sessions.Activate(flow);
  users_order_.Activate(entry.user);
  return true;
}

// Relies on this: users_order_ has exactly those users waiting who have items, and a user's
// `sessions` exactly the flows that do. So the first flow of the first user has a first item.
std::optional<FairQueue::Entry> FairQueue::Pop() {
  const auto user_id = users_order_.First();
  if (!user_id) return std::nullopt;
  User& user = users_.at(*user_id);
  const FlowId flow = *user.sessions.First();
  Flow& entry = flows_.at(flow);
  const auto [item, cost] = entry.items.front();
  entry.items.pop_front();
  --size_;
  // The virtual time is the start tag of what is served, so this comes before the charge.
  users_order_.Serve(*user_id);
  user.sessions.Serve(flow);
  users_order_.Charge(*user_id, cost);
  user.sessions.Charge(flow, cost);
  if (entry.items.empty()) user.sessions.Deactivate(flow);
  if (--user.waiting == 0) users_order_.Deactivate(*user_id);
  return Entry{flow, item, cost};
}

void FairQueue::Correct(FlowId flow, double predicted, double actual) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  users_order_.Charge(found->second.user, actual - predicted);
  users_.at(found->second.user).sessions.Charge(flow, actual - predicted);
}

}  // namespace kiln::fairness
