// Walks over the graph of nodes. All are iterative, so that a chain of a million nodes does not
// overflow the stack.
#ifndef KILN_COMPILER_IR_WALK_H_
#define KILN_COMPILER_IR_WALK_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::ir {

// Returns every node reachable from `roots` once, operands before users: a depth-first post-order
// that follows roots and operands in their order. It depends only on the graph's structure, not on
// the order in which its nodes were made. Null roots are skipped.
std::vector<const Node*> TopologicalOrder(absl::Span<const Node* const> roots);

// Returns the ranges that `root` depends on, in order of id, including a reduction's own ranges.
std::vector<const Node*> RangesOf(const Node* root);

// TopologicalOrder in pieces: each call returns only nodes that earlier calls did not, so that many
// roots over shared nodes cost each node once.
class TopologicalWalk {
 public:
  // Returns nothing for null.
  std::vector<const Node*> Visit(const Node* root);

 private:
  absl::flat_hash_set<const Node*> seen_;
};

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_WALK_H_
