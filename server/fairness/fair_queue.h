// Which of the waiting items runs next, so that users share a device in proportion to their
// weights.
//
// Start-time fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queueing", SIGCOMM 1996) at three
// levels: the priorities share the device, the users of one priority share its part, and the
// sessions of one user that user's. Every flow has the start tag of its next item; the least tag
// goes first; taking an item moves its flow's tag by cost / weight. A user or session that was idle
// starts behind the virtual time (the tag last served) by what it had less than the others, but by
// at most `credit_seconds` / weight (the idea is that of Duda, Cheriton: "Borrowed-virtual-time
// scheduling", SOSP 1999). So who asks for less than their share runs next, before all who wait
// there with work for a long time, and idling saves up no more than the credit. Costs are
// predictions; Correct() settles the difference when the time is known, so that a flow cannot gain
// by being predicted too cheap.
//
// What holds for any two at one level, of weights v and w, that have work from one moment to
// another, where no item of theirs takes longer than a and b seconds: the times they get, divided
// by their weights, differ by at most a / v + b / w, by the credit with which one of them began,
// and by what predictions that are not corrected yet are wrong by. While both priorities have work,
// batch therefore gets one part in kInteractiveWeight + 1, less one item: it is never starved.
// Where one has none, the other gets everything.
//
// Items of one flow keep their order. Pure and clock-free; not thread-safe: the dispatcher guards
// it.
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

// The order among flows, without items: one level of the hierarchy.
class TagOrder {
 public:
  // `credit`: see above.
  explicit TagOrder(double credit = 0) : credit_(credit) {}

  // `id` has work now. Nothing happens if it is waiting already.
  void Activate(int64_t id);
  void Deactivate(int64_t id);
  // The waiting id with the least tag (on equal tags the one that has waited longest); nullopt if
  // none waits.
  std::optional<int64_t> First() const;
  // Charges seconds / weight. Negative seconds give time back.
  void Charge(int64_t id, double seconds);
  // The virtual time moves to the tag of `id`, which is being served.
  void Serve(int64_t id);
  // Whether `id` has had so much that it would not begin with the whole credit.
  bool IsAhead(int64_t id) const;
  void SetWeight(int64_t id, double weight) { flows_[id].weight = weight; }
  void Forget(int64_t id);

 private:
  struct Flow {
    double tag = -std::numeric_limits<double>::infinity();  // until it begins
    double weight = 1;
    bool waiting = false;
    uint64_t since = 0;  // breaks ties in the order of arrival
  };
  using Key = std::pair<std::pair<double, uint64_t>, int64_t>;
  static Key KeyOf(int64_t id, const Flow& flow) { return {{flow.tag, flow.since}, id}; }
  // The least tag with which a flow may begin.
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
  // What a caller queues is a number of its own.
  using Item = int64_t;
  struct Entry {
    FlowId flow = 0;
    Item item = 0;
    double cost = 0;  // seconds, as predicted
  };

  // Users and sessions that were idle begin with this credit; the priorities have none.
  explicit FairQueue(double credit_seconds = 0);

  // A session of `user`. `weight` > 0 is the user's share relative to other users of the same
  // priority (the last one given counts).
  FlowId AddFlow(const std::string& user, double weight,
                 Priority priority = Priority::kInteractive);
  // Removes the flow and returns its waiting items. A user who has had more than others and comes
  // back is still known, so that nobody gains by leaving.
  std::vector<Item> RemoveFlow(FlowId flow);
  // From now on, if the user has a flow.
  void SetWeight(const std::string& user, double weight);

  // False if the flow is gone.
  bool Push(FlowId flow, Item item, double cost);
  // The rest of an item that was popped: the next of its flow. False if the flow is gone.
  bool PushFront(FlowId flow, Item item, double cost);
  // Those of the flow's items of which `is_unwanted` is true leave the queue.
  std::vector<Item> RemoveIf(FlowId flow, const std::function<bool(Item)>& is_unwanted);

  // The same for all flows.
  std::vector<Item> RemoveAllIf(const std::function<bool(Item)>& is_unwanted);

  // The item that Pop would take.
  std::optional<Entry> First() const;
  // The next item; its flow has been charged its cost.
  std::optional<Entry> Pop();
  // The popped item took `actual` seconds where `predicted` were charged. A flow that is gone is
  // ignored.
  void Correct(FlowId flow, double predicted, double actual);
  // The same, and it goes on as if another item of `cost` seconds had been popped. False: the flow
  // is gone.
  bool GoOn(FlowId flow, double predicted, double actual, double cost);

  // Until ReleaseHeld the flow's items are not popped; it then begins as one that was idle.
  void Hold(FlowId flow);
  void ReleaseHeld();
  // The same until Unblock, whatever ends; a flow that is gone is ignored.
  void Block(FlowId flow) { SetBlocked(flow, true); }
  void Unblock(FlowId flow) { SetBlocked(flow, false); }

  int64_t size() const { return size_; }

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

  void SetBlocked(FlowId flow, bool blocked);
  // Has every level know whether there is something to pop below.
  void Update(FlowId id, const Flow& flow);
  void Charge(const Flow& flow, FlowId id, double seconds);
  // The virtual times move to the flow's tags. Before it is charged.
  void Serve(const Flow& flow, FlowId id);
  void Depart(int64_t user_id);
  // Forgets those who have left and are no longer ahead of others, and the first of too many.
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
  std::deque<int64_t> departed_;  // users without a flow; at most kMostDeparted
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_FAIR_QUEUE_H_
