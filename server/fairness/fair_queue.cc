#include "server/fairness/fair_queue.h"

#include <algorithm>

#include "proto/check/check.h"

namespace kiln::fairness {
namespace {
constexpr size_t kDepartedMax = 1024;
}  // namespace

TagOrder::Flow& TagOrder::Find(int64_t id) {
  const auto found = flows_.find(id);
  KILN_CHECK(found != flows_.end()) << "flow " << id;
  return found->second;
}

void TagOrder::SetWeight(int64_t id, double weight) {
  KILN_CHECK_GT(weight, 0) << "flow " << id;
  flows_[id].weight = weight;
}

void TagOrder::Activate(int64_t id) {
  Flow& flow = Find(id);
  if (flow.waiting) return;
  flow.waiting = true;
  // With an old tag, an idle flow would run alone until it has caught up with the others.
  flow.tag = std::max(flow.tag, LeastTag(flow));
  flow.since = arrivals_++;
  waiting_.insert(KeyOf(id, flow));
}

void TagOrder::Deactivate(int64_t id) {
  Flow& flow = Find(id);
  if (!flow.waiting) return;
  waiting_.erase(KeyOf(id, flow));
  flow.waiting = false;
}

std::optional<int64_t> TagOrder::First() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->second;
}

void TagOrder::Charge(int64_t id, double seconds) {
  Flow& flow = Find(id);
  // The set is ordered by tag, so a flow must leave it while its tag changes.
  if (flow.waiting) waiting_.erase(KeyOf(id, flow));
  flow.tag += seconds / flow.weight;
  // It was just served, so it goes after flows with the same tag.
  flow.since = arrivals_++;
  if (flow.waiting) waiting_.insert(KeyOf(id, flow));
}

// The virtual time never decreases: a correction may have moved this flow's tag below that of an
// item served earlier.
void TagOrder::Serve(int64_t id) { virtual_time_ = std::max(virtual_time_, Find(id).tag); }

bool TagOrder::IsAhead(int64_t id) const {
  const auto found = flows_.find(id);
  return found != flows_.end() && found->second.tag > LeastTag(found->second);
}

void TagOrder::Forget(int64_t id) {
  Deactivate(id);
  flows_.erase(id);
}

void TagOrder::Validate() const {
  size_t waiting = 0;
  for (const auto& [id, flow] : flows_) {
    KILN_CHECK_GT(flow.weight, 0) << "flow " << id;
    if (!flow.waiting) continue;
    ++waiting;
    KILN_CHECK(waiting_.contains(KeyOf(id, flow))) << "flow " << id << " waits with another tag";
    KILN_CHECK_LT(flow.since, arrivals_) << "flow " << id;
  }
  KILN_CHECK_EQ(waiting, waiting_.size());
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
  KILN_CHECK(!flows_.contains(flow)) << "flow " << flow;
  entry.sessions.SetWeight(flow, 1);
  flows_[flow].user = user_id;
  KILN_VALIDATE(*this, entries());
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
  KILN_CHECK_GT(user.flows, 0) << "user " << user_id;
  if (--user.flows == 0) Depart(user_id);
  KILN_CHECK(!flows_.contains(flow));
  KILN_VALIDATE(*this, entries());
  return left;
}

void FairQueue::Depart(int64_t user_id) {
  departed_.push_back(user_id);
  ForgetDeparted();
  KILN_CHECK_LE(departed_.size(), kDepartedMax);
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
  KILN_CHECK_EQ(user.flows, 0) << "user " << user_id;
  KILN_CHECK_EQ(user.sessions.size(), 0) << "user " << user_id;
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
  KILN_VALIDATE(*this, entries());
  return true;
}

bool FairQueue::PushFront(FlowId flow, Item item, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return false;
  found->second.items.emplace_front(item, cost);
  ++size_;
  Update(flow, found->second);
  KILN_VALIDATE(*this, entries());
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
  KILN_CHECK_GE(size_, 0);
  Update(flow, found->second);
  KILN_VALIDATE(*this, entries());
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
  const Flow& first = flows_.at(flow);
  KILN_CHECK(!first.items.empty() && !first.held && !first.blocked) << "flow " << flow;
  const auto& [item, cost] = first.items.front();
  return Entry{flow, item, cost};
}

std::optional<FairQueue::Entry> FairQueue::Pop() {
  const auto first = First();
  if (!first) return std::nullopt;
  Flow& flow = flows_.at(first->flow);
  flow.items.pop_front();
  --size_;
  KILN_CHECK_GE(size_, 0);
  Serve(flow, first->flow);
  Charge(flow, first->flow, first->cost);
  Update(first->flow, flow);
  KILN_VALIDATE(*this, entries());
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
  KILN_VALIDATE(*this, entries());
}

bool FairQueue::GoOn(FlowId flow, double predicted, double actual, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return false;
  Charge(found->second, flow, actual - predicted);
  Serve(found->second, flow);
  Charge(found->second, flow, cost);
  KILN_VALIDATE(*this, entries());
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
  KILN_VALIDATE(*this, entries());
}

void FairQueue::SetBlocked(FlowId flow, bool blocked) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  found->second.blocked = blocked;
  Update(flow, found->second);
  KILN_VALIDATE(*this, entries());
}

void FairQueue::ReleaseHeld() {
  for (const FlowId flow : held_) {
    flows_.at(flow).held = false;
    Update(flow, flows_.at(flow));
  }
  held_.clear();
  KILN_VALIDATE(*this, entries());
}

std::vector<FairQueue::Item> FairQueue::Items() const {
  std::vector<Item> items;
  for (const auto& [id, flow] : flows_)
    for (const auto& [item, cost] : flow.items) items.push_back(item);
  return items;
}

std::set<FairQueue::FlowId> FairQueue::Blocked() const {
  std::set<FlowId> blocked;
  for (const auto& [id, flow] : flows_)
    if (flow.blocked) blocked.insert(id);
  return blocked;
}

void FairQueue::Validate() const {
  ValidateFlows();
  ValidateUsers();
  priorities_.Validate();
  KILN_CHECK_EQ(priorities_.size(), kNumPriorities);
  for (int64_t priority = 0; priority < kNumPriorities; ++priority) {
    const TagOrder& order = users_order_[static_cast<size_t>(priority)];
    order.Validate();
    KILN_CHECK_EQ(priorities_.IsWaiting(priority), order.First().has_value());
  }
}

void FairQueue::ValidateFlows() const {
  int64_t items = 0;
  size_t held = 0;
  for (const auto& [id, flow] : flows_) {
    KILN_CHECK_LT(id, next_id_);
    items += static_cast<int64_t>(flow.items.size());
    held += flow.held ? 1 : 0;
    KILN_CHECK_EQ(flow.held, held_.contains(id)) << "flow " << id;
    const auto user = users_.find(flow.user);
    KILN_CHECK(user != users_.end()) << "flow " << id << " of user " << flow.user;
    KILN_CHECK(user->second.sessions.Knows(id)) << "flow " << id;
    const bool is_ready = !flow.items.empty() && !flow.held && !flow.blocked;
    KILN_CHECK_EQ(user->second.sessions.IsWaiting(id), is_ready) << "flow " << id;
  }
  KILN_CHECK_EQ(items, size_);
  KILN_CHECK_EQ(held, held_.size());
}

void FairQueue::ValidateUsers() const {
  int64_t flows = 0;
  size_t departed = 0;
  std::array<size_t, kNumPriorities> of_priority{};
  for (const auto& [id, user] : users_) {
    KILN_CHECK_LT(id, next_id_);
    user.sessions.Validate();
    // So that the flows of a user are those that the user's order knows.
    KILN_CHECK_EQ(user.sessions.size(), user.flows) << "user " << id;
    flows += user.flows;
    departed += user.flows == 0 ? 1 : 0;
    const auto known = user_ids_.find({user.priority, user.name});
    KILN_CHECK(known != user_ids_.end() && known->second == id) << "user " << id;
    const TagOrder& order = users_order_[static_cast<size_t>(IndexOf(user.priority))];
    ++of_priority[static_cast<size_t>(IndexOf(user.priority))];
    KILN_CHECK(order.Knows(id)) << "user " << id;
    KILN_CHECK_EQ(order.IsWaiting(id), user.sessions.First().has_value()) << "user " << id;
  }
  KILN_CHECK_EQ(flows, flows_.size());
  KILN_CHECK_EQ(user_ids_.size(), users_.size());
  for (size_t i = 0; i < of_priority.size(); ++i)
    KILN_CHECK_EQ(users_order_[i].size(), of_priority[i]);
  KILN_CHECK_LE(departed_.size(), kDepartedMax);
  KILN_CHECK_EQ(departed_.size(), departed);
  for (const int64_t id : departed_) {
    const auto user = users_.find(id);
    KILN_CHECK(user != users_.end() && user->second.flows == 0) << "user " << id;
  }
}

}  // namespace kiln::fairness
