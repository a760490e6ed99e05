#include "compiler/partition/epilogue.h"

#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "compiler/partition/contraction.h"
#include "compiler/partition/reads.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

class Finder {
 public:
  Finder(const absl::flat_hash_map<const Node*, std::vector<const Node*>>& users,
         const absl::flat_hash_set<const Node*>& required)
      : users_(users), required_(required) {}

  absl::flat_hash_set<const Node*> Find(const std::vector<const Node*>& order) {
    absl::flat_hash_set<const Node*> ends;
    for (const Node* reduction : order) {
      if (!IsReduction(reduction)) continue;
      const Node* last = EndOfChain(reduction);
      // A chain that ends in a widening is stored before it, in half the memory; readers widen for
      // free.
      while (last != nullptr && IsWidening(last)) {
        last = IsElementwise(last->operand(0)) ? last->operand(0) : nullptr;
      }
      if (last != nullptr) ends.insert(last);
    }
    return ends;
  }

 private:
  // The last elementwise value of the chain; null if there is none. A contraction, whose loops have
  // no order of their own, is also stored as it is permuted. Chains join each other (a sum of many
  // sums), so the ends that were found are remembered.
  const Node* EndOfChain(const Node* reduction) {
    const int bytes = ir::SizeOf(reduction->dtype());
    const bool permutes = IsContraction(reduction);
    std::vector<const Node*> walked;
    const Node* last = nullptr;
    for (const Node* node = Successor(reduction); node != nullptr; node = Successor(node)) {
      // The end is stored instead of the reduction, so it must not take more memory.
      if (required_.contains(node) ||
          ir::NumElements(node->shape()) != ir::NumElements(reduction->shape()))
        break;
      if (ir::SizeOf(node->dtype()) > bytes) break;
      if (!IsElementwise(node) && !IsMovement(node)) break;
      if (auto known = known_.find({node, {bytes, permutes}}); known != known_.end()) {
        last = known->second;
        break;
      }
      walked.push_back(node);
    }
    // Backwards, so that each node of the chain learns the end that lies ahead of it.
    for (size_t i = walked.size(); i-- > 0;) {
      const bool ends = IsElementwise(walked[i]) || (permutes && walked[i]->op() == Op::kPermute);
      if (last == nullptr && ends) last = walked[i];
      known_[{walked[i], {bytes, permutes}}] = last;
    }
    return last;
  }

  // The node through which all of this one's uses go: its only user, or the one in which x and
  // where(0 < x, x, 0) meet.
  const Node* Successor(const Node* node) const {
    const std::vector<const Node*>& users = users_.at(node);
    for (const Node* candidate : users) {
      // Every other user is elementwise and used by the candidate alone, so that storing the
      // candidate serves all of them.
      const bool all = absl::c_all_of(users, [&](const Node* user) {
        if (user == candidate) return true;
        const std::vector<const Node*>& next = users_.at(user);
        return IsElementwise(user) && !required_.contains(user) && next.size() == 1 &&
               next[0] == candidate;
      });
      if (all) return candidate;
    }
    return nullptr;
  }

  const absl::flat_hash_map<const Node*, std::vector<const Node*>>& users_;
  const absl::flat_hash_set<const Node*>& required_;
  // EndOfChain from a node on, for reductions with elements of so many bytes that are contractions
  // or not.
  absl::flat_hash_map<std::pair<const Node*, std::pair<int, bool>>, const Node*> known_;
};

}  // namespace

absl::flat_hash_set<const Node*> FindEpilogues(
    const std::vector<const Node*>& order,
    const absl::flat_hash_map<const Node*, std::vector<const Node*>>& users,
    const absl::flat_hash_set<const Node*>& required) {
  return Finder(users, required).Find(order);
}

}  // namespace kiln::partition
