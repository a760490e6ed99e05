// What it takes to compute one element of a value from stored values: the unit is one read of one
// element from memory.
#ifndef KILN_COMPILER_PARTITION_EXPRESSION_H_
#define KILN_COMPILER_PARTITION_EXPRESSION_H_

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
  absl::flat_hash_set<const ir::Node*> leaves;  // an estimate has some of them at most
};

// Of a value that is stored: itself.
Expression StoredExpression(const ir::Node* node);
// From the operands' expressions; what they share counts more than once: an upper bound. `costs`:
// the target's.
Expression EstimateExpression(const ir::Node* node,
                              const absl::flat_hash_map<const ir::Node*, Expression>& operands,
                              const drivers::StorageCosts& costs);
// Each node once. `stored` are leaves, but for the node itself.
Expression WalkExpression(const ir::Node* node, const absl::flat_hash_set<const ir::Node*>& stored,
                          const drivers::StorageCosts& costs);

// Reads of memory for one element of the node: small operands stay in the cache.
double ReadsOf(const ir::Node* node, const Expression& expression);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_EXPRESSION_H_
