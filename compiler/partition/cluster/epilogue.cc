#include "compiler/partition/cluster/epilogue.h"

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
         const absl::flat_hash_set<const Node*>& required, bool matrix_units)
      : users_(users), required_(required), matrix_units_(matrix_units) {}

  absl::flat_hash_set<const Node*> Find(const std::vector<const Node*>& order) {
    absl::flat_hash_set<const Node*> ends;
    for (const Node* reduction : order) {
      if (!IsReduction(reduction)) continue;
      const Node* last = EndOfChain(reduction);
      // A chain that ends in a widening cast is stored before it, in half the memory.
      while (last != nullptr) {
        const Node* before = LeftToReaders(last, matrix_units_);
        if (before == nullptr) break;
        last = IsElementwise(before) ? before : nullptr;
      }
      if (last != nullptr) ends.insert(last);
    }
    return ends;
  }

 private:
  // Returns the last elementwise value of the chain; null if there is none. A contraction's loops
  // have no fixed order, so it may also be stored permuted. Chains join each other (a sum of many
  // sums), so results are memoised.
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
    // Backwards, so that each node of the chain gets the end that comes after it.
    for (size_t i = walked.size(); i-- > 0;) {
      const bool ends = IsElementwise(walked[i]) || (permutes && walked[i]->op() == Op::kPermute);
      if (last == nullptr && ends) last = walked[i];
      known_[{walked[i], {bytes, permutes}}] = last;
    }
    return last;
  }

  // Returns the node through which all uses of this one go: its only user, or the one where its
  // uses meet, as x and the comparisons x < 0 and x == 0 do in relu(x). Storing that node serves
  // all uses.
  const Node* Successor(const Node* node) const {
    const std::vector<const Node*>& users = users_.at(node);
    for (const Node* candidate : users) {
      const bool all =
          absl::c_all_of(users, [&](const Node* user) { return LeadsOnlyTo(candidate, user); });
      if (all) return candidate;
    }
    return nullptr;
  }

  // Only few steps, since recomputing them from the stored value should be almost free.
  bool LeadsOnlyTo(const Node* end, const Node* node) const {
    constexpr int kStepsMax = 2;
    for (int step = 0; node != end; ++step) {
      const std::vector<const Node*>& next = users_.at(node);
      if (step == kStepsMax || !IsElementwise(node) || required_.contains(node) || next.size() != 1)
        return false;
      node = next[0];
    }
    return true;
  }

  const absl::flat_hash_map<const Node*, std::vector<const Node*>>& users_;
  const absl::flat_hash_set<const Node*>& required_;
  const bool matrix_units_;
  // EndOfChain from a node on, for reductions with elements of that many bytes that are (or are
  // not) contractions.
  absl::flat_hash_map<std::pair<const Node*, std::pair<int, bool>>, const Node*> known_;
};

}  // namespace

absl::flat_hash_set<const Node*> FindEpilogues(
    const std::vector<const Node*>& order,
    const absl::flat_hash_map<const Node*, std::vector<const Node*>>& users,
    const absl::flat_hash_set<const Node*>& required, bool matrix_units) {
  return Finder(users, required, matrix_units).Find(order);
}

}  // namespace kiln::partition
