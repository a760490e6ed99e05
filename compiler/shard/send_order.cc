#include "compiler/shard/send_order.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/graph/error.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/shard/rules.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

using ir::Node;

bool IsWork(const Node* node) {
  const RuleKind kind = RuleOf(node->op());
  return kind == RuleKind::kReduce || kind == RuleKind::kGather || kind == RuleKind::kScatter;
}

// The sends whose results a value on the same device depends on, in the graph's order. Values with
// equal sets share one.
using Sends = std::shared_ptr<const std::vector<const Node*>>;

struct Send {
  const Node* node = nullptr;
  int device = 0;  // the sender
  Sends needed;
  size_t arrived = 0;  // how many of `needed`, counted from the first
};

class Orderer {
 public:
  Orderer(const graph::Graph& graph, const graph::Homes& homes)
      : homes_(homes), order_(ir::TopologicalOrder(graph::Roots(graph))) {}

  SendOrder Run() && {
    for (const Node* node : order_) {
      number_[node] = static_cast<int64_t>(number_.size());
      if (!IsTransfer(homes_, node)) {
        needed_[node] = NeededBy(node);
        continue;
      }
      waiting_.push_back({node, homes_.at(node->operand(0)), needed_.at(node->operand(0))});
      needed_[node] = std::make_shared<std::vector<const Node*>>(1, node);
    }
    for (int slot = 0; !waiting_.empty(); ++slot) {
      FillSlot(slot);
      result_.slots = slot + 2;
    }
    for (const Node* node : order_) PlaceEarly(node);
    // As much work as building it.
    KILN_VALIDATE(*this, 1);
    return std::move(result_);
  }

  // Checks that each value of a device has a slot, not before its operands, and that what is sent
  // arrives in a later slot.
  void Validate() const {
    for (const Node* node : order_) {
      if (homes_.at(node) == graph::kAnywhere) continue;
      const auto found = result_.slot_of.find(node);
      KILN_CHECK(found != result_.slot_of.end()) << "node " << node->id() << " has no slot";
      for (const Node* operand : node->operands()) {
        const auto below = result_.slot_of.find(operand);
        if (below == result_.slot_of.end()) continue;
        KILN_CHECK_GE(found->second, below->second + (IsTransfer(homes_, node) ? 1 : 0))
            << "node " << node->id();
      }
    }
  }

 private:
  Sends NeededBy(const Node* node) const {
    Sends found = std::make_shared<std::vector<const Node*>>();
    for (const Node* operand : node->operands()) {
      const Sends& more = needed_.at(operand);
      if (more == found || more->empty()) continue;
      found = found->empty() ? more : Union(*found, *more);
    }
    return found;
  }

  Sends Union(const std::vector<const Node*>& a, const std::vector<const Node*>& b) const {
    auto both = std::make_shared<std::vector<const Node*>>();
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(*both),
                   [&](const Node* x, const Node* y) { return number_.at(x) < number_.at(y); });
    return both;
  }

  bool IsPlaced(const Node* node) const {
    return homes_.at(node) == graph::kAnywhere || result_.slot_of.contains(node);
  }

  // Calls `visit` with `value` and the values that it depends on within its device, unless they
  // have a slot already, until `visit` returns false.
  template <typename VisitFn>
  void ForEachNotPlaced(const Node* value, VisitFn visit) const {
    std::vector<const Node*> stack = {value};
    absl::flat_hash_set<const Node*> seen = {value};
    while (!stack.empty()) {
      const Node* next = stack.back();
      stack.pop_back();
      if (IsPlaced(next)) continue;
      if (!visit(next)) return;
      for (const Node* operand : next->operands()) {
        if (seen.insert(operand).second) stack.push_back(operand);
      }
    }
  }

  void FillSlot(int slot) {
    absl::flat_hash_set<int> busy;  // devices that have work in this slot
    std::vector<Send> left;
    for (Send& send : waiting_) {
      const std::vector<const Node*>& needed = *send.needed;
      while (send.arrived < needed.size() && HasArrived(needed[send.arrived], slot)) ++send.arrived;
      const bool is_taken = send.arrived == needed.size() && TakeInto(slot, send, &busy);
      if (!is_taken) left.push_back(std::move(send));
    }
    waiting_ = std::move(left);
  }

  bool HasArrived(const Node* send, int slot) const {
    const auto arrives = result_.slot_of.find(send);
    return arrives != result_.slot_of.end() && arrives->second <= slot;
  }

  // Places the send and the values it needs, unless it has work to do and its device is busy.
  bool TakeInto(int slot, const Send& send, absl::flat_hash_set<int>* busy) {
    const Node* value = send.node->operand(0);
    bool has_work = false;
    ForEachNotPlaced(value, [&](const Node* node) { return !(has_work = IsWork(node)); });
    if (has_work && !busy->insert(send.device).second) return false;
    std::vector<const Node*> nodes;
    ForEachNotPlaced(value, [&](const Node* node) {
      nodes.push_back(node);
      return true;
    });
    for (const Node* node : nodes) result_.slot_of[node] = slot;
    KILN_CHECK(!result_.slot_of.contains(send.node)) << "node " << send.node->id();
    result_.slot_of[send.node] = slot + 1;
    return true;
  }

  void PlaceEarly(const Node* node) {
    if (homes_.at(node) == graph::kAnywhere || result_.slot_of.contains(node)) return;
    int slot = 0;
    for (const Node* operand : node->operands()) {
      const auto below = result_.slot_of.find(operand);
      if (below != result_.slot_of.end()) slot = std::max(slot, below->second);
    }
    result_.slot_of[node] = slot;
  }

  const graph::Homes& homes_;
  const std::vector<const Node*> order_;
  absl::flat_hash_map<const Node*, int64_t> number_;  // in that order
  absl::flat_hash_map<const Node*, Sends> needed_;
  std::vector<Send> waiting_;  // in the graph's order
  SendOrder result_;
};

}  // namespace

bool IsTransfer(const graph::Homes& homes, const Node* node) {
  if (node->op() != ir::Op::kSend) return false;
  return homes.at(node->operand(0)) != homes.at(node);
}

absl::Status CheckSends(const graph::Graph& graph) {
  if (graph.sharding == nullptr || !graph.sharding->stages) return absl::OkStatus();
  const absl::StatusOr<graph::Homes> homes = graph::FindHomes(graph);
  if (!homes.ok()) return homes.status();
  int64_t sends = 0;
  for (const auto& [node, home] : *homes) sends += IsTransfer(*homes, node) ? 1 : 0;
  if (sends <= kSendsMax) return absl::OkStatus();
  return graph::MakeError(
      "TOO_LARGE", {},
      StrCat("the graph sends ", sends,
             " values between devices, including those of its gradients; at most ", kSendsMax,
             " are allowed; use fewer stages, or fewer parts of a batch in one program"));
}

SendOrder OrderSends(const graph::Graph& graph, const graph::Homes& homes) {
  return Orderer(graph, homes).Run();
}

}  // namespace kiln::shard
