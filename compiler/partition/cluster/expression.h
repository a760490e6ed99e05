// The cost of computing one element of a value from stored values, in units of one read of one
// element from memory.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_EXPRESSION_H_
#define KILN_COMPILER_PARTITION_CLUSTER_EXPRESSION_H_

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/node.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// A value's expression, down to stored values.
struct Expression {
  double arithmetic = 0;
  int nodes = 0;
  bool reads_reduction = false;
  int num_leaves = 0;
  absl::flat_hash_set<const ir::Node*> leaves;  // an estimate has at most some of them
};

// Returns the expression of a stored value: the value itself.
Expression StoredExpression(const ir::Node* node);
// Estimates an upper bound from the operands' expressions; nodes that they share count more than
// once. `costs` are the target's.
Expression EstimateExpression(const ir::Node* node,
                              const absl::flat_hash_map<const ir::Node*, Expression>& operands,
                              const drivers::StorageCosts& costs);
// Visits each node once. Nodes in `stored` are leaves, except for the node itself.
Expression WalkExpression(const ir::Node* node, const absl::flat_hash_set<const ir::Node*>& stored,
                          const drivers::StorageCosts& costs);

// Returns the memory reads for one element of the node: small operands stay in the cache.
double ReadsOf(const ir::Node* node, const Expression& expression);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_EXPRESSION_H_
