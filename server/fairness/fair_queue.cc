#include "server/fairness/fair_queue.h"

#include <algorithm>

namespace kiln::fairness {
namespace {
constexpr size_t kDepartedMax = 1024;
}  // namespace

void TagOrder::Activate(int64_t id) {
  Flow& flow = flows_[id];
  if (flow.waiting) return;
  flow.waiting = true;
  // With an old tag, an idle flow would run alone until it has caught up with the others.
  flow.tag = std::max(flow.tag, LeastTag(flow));
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
  // The set is ordered by tag, so a flow must leave it while its tag changes.
  if (flow.waiting) waiting_.erase(KeyOf(id, flow));
  flow.tag += seconds / flow.weight;
  // It was just served, so it goes after flows with the same tag.
  flow.since = arrivals_++;
  if (flow.waiting) waiting_.insert(KeyOf(id, flow));
}

// The virtual time never decreases: a correction may have moved this flow's tag below that of an
// item served earlier.
void TagOrder::Serve(int64_t id) { virtual_time_ = std::max(virtual_time_, flows_[id].tag); }

bool TagOrder::IsAhead(int64_t id) const {
  const auto found = flows_.find(id);
  return found != flows_.end() && found->second.tag > LeastTag(found->second);
}

void TagOrder::Forget(int64_t id) {
  Deactivate(id);
  flows_.erase(id);
}

FairQueue::FairQueue(double credit_seconds) : credit_seconds_(credit_seconds) {
  users_order_.fill(TagOrder(credit_seconds));
  priorities_.SetWeight(IndexOf(Priority::kInteractive), kInteractiveWeight);
  priorities_.SetWeight(IndexOf(Priority::kBatch), 1);
}

FairQueue::FlowId FairQueue::AddFlow(const std::string& user, double weight, Priority priority) {
  auto [known, is_new] = user_ids_.try_emplace({priority, user}, 0);
  if (is_new) {
    known->second = next_id_++;
    users_[known->second].name = user;
    users_[known->second].priority = priority;
    users_[known->second].sessions = TagOrder(credit_seconds_);
  }
  const int64_t user_id = known->second;
  SetWeight(user, weight);
  User& entry = users_[user_id];
  if (entry.flows++ == 0) std::erase(departed_, user_id);
  const FlowId flow = next_id_++;
  entry.sessions.SetWeight(flow, 1);
  flows_[flow].user = user_id;
  return flow;
}

void FairQueue::SetWeight(const std::string& user, double weight) {
  for (const Priority priority : {Priority::kInteractive, Priority::kBatch}) {
    const auto known = user_ids_.find({priority, user});
    if (known != user_ids_.end()) users_order_[IndexOf(priority)].SetWeight(known->second, weight);
  }
}

std::vector<FairQueue::Item> FairQueue::RemoveFlow(FlowId flow) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return {};
  std::vector<Item> left = RemoveIf(flow, [](Item) { return true; });
  const int64_t user_id = found->second.user;
  flows_.erase(found);
  held_.erase(flow);
  User& user = users_.at(user_id);
  user.sessions.Forget(flow);
  if (--user.flows == 0) Depart(user_id);
  return left;
}

void FairQueue::Depart(int64_t user_id) {
  departed_.push_back(user_id);
  ForgetDeparted();
}

void FairQueue::ForgetDeparted() {
  for (auto user = departed_.begin(); user != departed_.end();) {
    const bool is_ahead = users_order_[IndexOf(users_.at(*user).priority)].IsAhead(*user);
    if (is_ahead && departed_.size() <= kDepartedMax) {
      ++user;
      continue;
    }
    Forget(*user);
    user = departed_.erase(user);
  }
}

void FairQueue::Forget(int64_t user_id) {
  const User& user = users_.at(user_id);
  users_order_[IndexOf(user.priority)].Forget(user_id);
  user_ids_.erase({user.priority, user.name});
  users_.erase(user_id);
}

void FairQueue::Update(FlowId id, const Flow& flow) {
  User& user = users_.at(flow.user);
  if (flow.items.empty() || flow.held || flow.blocked) {
    user.sessions.Deactivate(id);
  } else {
    user.sessions.Activate(id);
  }
  TagOrder& order = users_order_[IndexOf(user.priority)];
  if (user.sessions.First()) {
    order.Activate(flow.user);
  } else {
    order.Deactivate(flow.user);
  }
  if (order.First()) {
    priorities_.Activate(IndexOf(user.priority));
  } else {
    priorities_.Deactivate(IndexOf(user.priority));
  }
}

bool FairQueue::Push(FlowId flow, Item item, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return false;
  found->second.items.emplace_back(item, cost);
  ++size_;
  Update(flow, found->second);
  return true;
}

bool FairQueue::PushFront(FlowId flow, Item item, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return false;
  found->second.items.emplace_front(item, cost);
  ++size_;
  Update(flow, found->second);
  return true;
}

std::vector<FairQueue::Item> FairQueue::RemoveIf(FlowId flow,
                                                 const std::function<bool(Item)>& is_unwanted) {
  std::vector<Item> removed;
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return removed;
  std::erase_if(found->second.items, [&](const std::pair<Item, double>& entry) {
    if (!is_unwanted(entry.first)) return false;
    removed.push_back(entry.first);
    return true;
  });
  size_ -= static_cast<int64_t>(removed.size());
  Update(flow, found->second);
  return removed;
}

std::vector<FairQueue::Item> FairQueue::RemoveAllIf(const std::function<bool(Item)>& is_unwanted) {
  std::vector<Item> removed;
  for (const auto& [id, flow] : flows_) {
    for (const Item item : RemoveIf(id, is_unwanted)) removed.push_back(item);
  }
  return removed;
}

// Relies on Update: every waiting id at one level has something to pop at the level below.
std::optional<FairQueue::Entry> FairQueue::First() const {
  const auto priority = priorities_.First();
  if (!priority) return std::nullopt;
  const int64_t user_id = *users_order_[*priority].First();
  const FlowId flow = *users_.at(user_id).sessions.First();
  const auto& [item, cost] = flows_.at(flow).items.front();
  return Entry{flow, item, cost};
}

std::optional<FairQueue::Entry> FairQueue::Pop() {
  const auto first = First();
  if (!first) return std::nullopt;
  Flow& flow = flows_.at(first->flow);
  flow.items.pop_front();
  --size_;
  Serve(flow, first->flow);
  Charge(flow, first->flow, first->cost);
  Update(first->flow, flow);
  return first;
}

void FairQueue::Charge(const Flow& flow, FlowId id, double seconds) {
  User& user = users_.at(flow.user);
  priorities_.Charge(IndexOf(user.priority), seconds);
  users_order_[IndexOf(user.priority)].Charge(flow.user, seconds);
  user.sessions.Charge(id, seconds);
}

void FairQueue::Correct(FlowId flow, double predicted, double actual) {
  const auto found = flows_.find(flow);
  if (found != flows_.end()) Charge(found->second, flow, actual - predicted);
}

bool FairQueue::GoOn(FlowId flow, double predicted, double actual, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return false;
  Charge(found->second, flow, actual - predicted);
  Serve(found->second, flow);
  Charge(found->second, flow, cost);
  return true;
}

// The virtual time becomes the start tag of the served item.
void FairQueue::Serve(const Flow& flow, FlowId id) {
  User& user = users_.at(flow.user);
  priorities_.Serve(IndexOf(user.priority));
  users_order_[IndexOf(user.priority)].Serve(flow.user);
  user.sessions.Serve(id);
}

void FairQueue::Hold(FlowId flow) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  found->second.held = true;
  held_.insert(flow);
  Update(flow, found->second);
}

void FairQueue::SetBlocked(FlowId flow, bool blocked) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  found->second.blocked = blocked;
  Update(flow, found->second);
}

void FairQueue::ReleaseHeld() {
  for (const FlowId flow : held_) {
    flows_.at(flow).held = false;
    Update(flow, flows_.at(flow));
  }
  held_.clear();
}

}  // namespace kiln::fairness
