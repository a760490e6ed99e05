// Which of the waiting items runs next, so that users share a device in proportion to their
// weights.
//
// Start-time fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queueing", SIGCOMM 1996) at two
// levels: users share the device, and the sessions of one user share that user's part. Every flow
// has the start tag of its next item; the least tag goes first; taking an item moves its flow's tag
// by cost / weight. A flow that was idle starts at the virtual time (the tag last served), so that
// idling saves up nothing. Costs are predictions; Correct() settles the difference when the time is
// known, so that a flow cannot gain by being predicted too cheap.
//
// Items of one flow keep their order. Pure and clock-free; not thread-safe: the dispatcher guards
// it.
#ifndef KILN_SERVER_FAIRNESS_FAIR_QUEUE_H_
#define KILN_SERVER_FAIRNESS_FAIR_QUEUE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln::fairness {

// The order among flows, without items: one level of the hierarchy.
class TagOrder {
 public:
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
  void SetWeight(int64_t id, double weight) { flows_[id].weight = weight; }
  void Forget(int64_t id);

 private:
  struct Flow {
    double tag = 0;
    double weight = 1;
    bool waiting = false;
    uint64_t since = 0;  // breaks ties in the order of arrival
  };
  using Key = std::pair<std::pair<double, uint64_t>, int64_t>;
  static Key KeyOf(int64_t id, const Flow& flow) { return {{flow.tag, flow.since}, id}; }

  double virtual_time_ = 0;
  uint64_t arrivals_ = 0;
  std::map<int64_t, Flow> flows_;
  std::set<Key> waiting_;
};

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

  // A session of `user`. `weight` > 0 is the user's share relative to other users (the last one
  // given counts).
  FlowId AddFlow(const std::string& user, double weight);
  // Removes the flow and returns its waiting items. The user's history ends with its last flow.
  std::vector<Item> RemoveFlow(FlowId flow);

  // False if the flow is gone.
  bool Push(FlowId flow, Item item, double cost);
  // The next item; its flow has been charged its cost.
  std::optional<Entry> Pop();
  // The popped item took `actual` seconds where `predicted` were charged. A flow that is gone is
  // ignored.
  void Correct(FlowId flow, double predicted, double actual);

  int64_t size() const { return size_; }

 private:
  struct User {
    std::string name;
    int flows = 0;
    int64_t waiting = 0;
    TagOrder sessions;
  };
  struct Flow {
    int64_t user = 0;
    std::deque<std::pair<Item, double>> items;
  };

  int64_t next_id_ = 1;
  int64_t size_ = 0;
  TagOrder users_order_;
  std::map<int64_t, User> users_;
  std::map<std::string, int64_t> user_ids_;
  std::map<FlowId, Flow> flows_;
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_FAIR_QUEUE_H_
