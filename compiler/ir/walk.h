// Walks over the graph of nodes. All are iterative: a chain of a million nodes overflows no stack.
#ifndef KILN_COMPILER_IR_WALK_H_
#define KILN_COMPILER_IR_WALK_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::ir {

// Every node reachable from `roots` once, operands before users: a depth-first post-order that
// follows roots and operands in their order. It depends on the graph's structure alone, not on the
// order in which its nodes were made. Null roots are skipped.
std::vector<const Node*> TopologicalOrder(absl::Span<const Node* const> roots);

// The ranges that `root` depends on, in order of id; a reduction's own ranges count too.
std::vector<const Node*> RangesOf(const Node* root);

// TopologicalOrder in pieces: each call gives what the ones before did not, so that many roots over
// shared nodes cost each node once.
class TopologicalWalk {
 public:
  // Nothing for null.
  std::vector<const Node*> Visit(const Node* root);

 private:
  absl::flat_hash_set<const Node*> seen_;
};

// For every node reachable from `roots`, the nodes that have it as an operand, each once, in
// topological order.
using Users = absl::flat_hash_map<const Node*, std::vector<const Node*>>;
Users FindUsers(absl::Span<const Node* const> roots);

// `roots` with every occurrence of a key replaced by its value. Values are put in as they are, not
// substituted again.
using Substitution = absl::flat_hash_map<const Node*, const Node*>;
std::vector<const Node*> Substitute(Context& context, absl::Span<const Node* const> roots,
                                    const Substitution& substitution);
const Node* Substitute(Context& context, const Node* root, const Substitution& substitution);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_WALK_H_
