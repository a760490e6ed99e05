// Decides which waiting item runs next, so that users share a device in proportion to their
// weights.
//
// Start-time fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queueing", SIGCOMM 1996) at three
// levels: the priorities share the device, the users of one priority share its part, and the
// sessions of one user share that user's part. Every flow has the start tag of its next item. The
// lowest tag is served first, and taking an item increases its flow's tag by cost / weight. A user
// or session that was idle starts below the virtual time (the tag last served) by the amount that
// it had less than the others, but by at most `credit_seconds` / weight (after Duda, Cheriton:
// "Borrowed-virtual-time scheduling", SOSP 1999). So a user who asks for less than their share runs
// next, before all users who have had work waiting for a long time, and idling accumulates no more
// than the credit. Costs are predictions; Correct() settles the difference when the time is known,
// so that a flow cannot gain from predictions that are too low.
//
// Bound: take any two flows at one level, of weights v and w, that both have work during an
// interval, and whose items take at most a and b seconds. The times they get, divided by their
// weights, differ by at most a / v + b / w, plus the credit with which one of them began, plus the
// error of predictions not corrected yet. While both priorities have work, batch therefore gets one
// part in kInteractiveWeight + 1, less one item: it is never starved. If only one of them has work,
// it gets everything.
//
// Items of one flow keep their order. Pure, without a clock. Not thread-safe; the dispatcher holds
// a lock.
#ifndef KILN_SERVER_FAIRNESS_FAIR_QUEUE_H_
#define KILN_SERVER_FAIRNESS_FAIR_QUEUE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln::fairness {

// One level of the hierarchy: the order among flows, without items.
class TagOrder {
 public:
  // `credit`: see above.
  explicit TagOrder(double credit = 0) : credit_(credit) {}

  // Requires of all of them: SetWeight has added `id`, and it is not forgotten.
  //
  // `id` has work now. Does nothing if it is already waiting.
  void Activate(int64_t id);
  void Deactivate(int64_t id);
  // The waiting id with the lowest tag (with equal tags, the one that has waited longest); nullopt
  // if none waits.
  std::optional<int64_t> First() const;
  // Charges seconds / weight. Negative seconds refund time.
  void Charge(int64_t id, double seconds);
  // Advances the virtual time to the tag of `id`, which is being served.
  void Serve(int64_t id);
  // Whether `id` has had so much that it would begin with less than the whole credit.
  bool IsAhead(int64_t id) const;
  void Forget(int64_t id);

  // Adds `id`, or changes its weight. Requires: weight > 0.
  void SetWeight(int64_t id, double weight);

  // For the checks of the tables that use this.
  bool Knows(int64_t id) const { return flows_.contains(id); }
  bool IsWaiting(int64_t id) const { return flows_.at(id).waiting; }
  size_t size() const { return flows_.size(); }
  void Validate() const;

 private:
  struct Flow {
    double tag = -std::numeric_limits<double>::infinity();  // until it first begins
    double weight = 1;
    bool waiting = false;
    uint64_t since = 0;  // breaks ties by order of arrival
  };
  using Key = std::pair<std::pair<double, uint64_t>, int64_t>;
  static Key KeyOf(int64_t id, const Flow& flow) { return {{flow.tag, flow.since}, id}; }
  Flow& Find(int64_t id);
  // The lowest tag with which a flow may begin.
  double LeastTag(const Flow& flow) const { return virtual_time_ - credit_ / flow.weight; }

  double credit_ = 0;
  double virtual_time_ = 0;
  uint64_t arrivals_ = 0;
  std::map<int64_t, Flow> flows_;
  std::set<Key> waiting_;
};

enum class Priority { kInteractive, kBatch };
inline constexpr int kNumPriorities = 2;
// Relative to batch, whose weight is 1.
inline constexpr double kInteractiveWeight = 16;

class FairQueue {
 public:
  using FlowId = int64_t;
  // A number chosen by the caller.
  using Item = int64_t;
  struct Entry {
    FlowId flow = 0;
    Item item = 0;
    double cost = 0;  // predicted seconds
  };

  // Idle users and sessions begin with this credit; priorities have none.
  explicit FairQueue(double credit_seconds = 0);

  // Adds a session of `user`. `weight` > 0 is the user's share relative to other users of the same
  // priority (the latest value applies).
  FlowId AddFlow(const std::string& user, double weight,
                 Priority priority = Priority::kInteractive);
  // Removes the flow and returns its waiting items. A user who has had more than others is
  // remembered, so that leaving and coming back gains nothing.
  std::vector<Item> RemoveFlow(FlowId flow);
  // Applies from now on, if the user has a flow.
  void SetWeight(const std::string& user, double weight);

  // Returns false if the flow is gone.
  bool Push(FlowId flow, Item item, double cost);
  // Pushes the rest of a popped item as the next of its flow. Returns false if the flow is gone.
  bool PushFront(FlowId flow, Item item, double cost);
  // Removes and returns the flow's items for which `is_unwanted` is true.
  std::vector<Item> RemoveIf(FlowId flow, const std::function<bool(Item)>& is_unwanted);

  // The same for all flows.
  std::vector<Item> RemoveAllIf(const std::function<bool(Item)>& is_unwanted);

  // The item that Pop would return.
  std::optional<Entry> First() const;
  // Pops the next item and charges its cost to its flow.
  std::optional<Entry> Pop();
  // The popped item took `actual` seconds where `predicted` were charged. Ignored if the flow is
  // gone.
  void Correct(FlowId flow, double predicted, double actual);
  // The same, and the item continues as if another item of `cost` seconds had been popped. Returns
  // false if the flow is gone.
  bool GoOn(FlowId flow, double predicted, double actual, double cost);

  // The flow's items are not popped until ReleaseHeld; it then begins as after being idle.
  void Hold(FlowId flow);
  void ReleaseHeld();
  // The same until Unblock, which only that ends. Ignored if the flow is gone.
  void Block(FlowId flow) { SetBlocked(flow, true); }
  void Unblock(FlowId flow) { SetBlocked(flow, false); }

  int64_t size() const { return size_; }

  // For the checks of the tables that use this: all waiting items, and the blocked flows.
  std::vector<Item> Items() const;
  std::set<FlowId> Blocked() const;
  bool Knows(FlowId flow) const { return flows_.contains(flow); }
  void Validate() const;

 private:
  struct User {
    std::string name;
    Priority priority = Priority::kInteractive;
    int flows = 0;
    TagOrder sessions;
  };
  struct Flow {
    int64_t user = 0;
    bool held = false;
    bool blocked = false;
    std::deque<std::pair<Item, double>> items;
  };
  using UserKey = std::pair<Priority, std::string>;
  static int64_t IndexOf(Priority priority) { return static_cast<int64_t>(priority); }

  size_t entries() const { return users_.size() + flows_.size() + static_cast<size_t>(size_); }
  void ValidateFlows() const;
  void ValidateUsers() const;
  void SetBlocked(FlowId flow, bool blocked);
  // Updates every level on whether there is something to pop below.
  void Update(FlowId id, const Flow& flow);
  void Charge(const Flow& flow, FlowId id, double seconds);
  // Advances the virtual times to the flow's tags. Call this before charging it.
  void Serve(const Flow& flow, FlowId id);
  void Depart(int64_t user_id);
  // Forgets departed users who are no longer ahead of others, and the oldest if there are too many.
  void ForgetDeparted();
  void Forget(int64_t user_id);

  const double credit_seconds_;
  int64_t next_id_ = 1;
  int64_t size_ = 0;
  TagOrder priorities_;
  std::array<TagOrder, kNumPriorities> users_order_;
  std::map<int64_t, User> users_;
  std::map<UserKey, int64_t> user_ids_;
  std::map<FlowId, Flow> flows_;
  std::set<FlowId> held_;
  std::deque<int64_t> departed_;  // users without a flow; at most kDepartedMax
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_FAIR_QUEUE_H_
