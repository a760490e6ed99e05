// Chooses the layout of every value of a sharded graph, from the specs of inputs, outputs and
// hints, by the rules of rules.h.
//
//  * Backward, wishes: the layout of a result determines the layout wanted for the sums that it
//    depends on. An optimizer's split moments turn the gradient's all-reduce into a reduce-scatter.
//  * Forward, choices: an elementwise result takes the splits of all its operands, as far as they
//    agree, since cutting a part out of what each device has is free. Where two operands want one
//    axis of the mesh for different dimensions, the order is: hinted values, values computed from
//    data, then state (updated inputs), and among equals the larger one. The others are moved.
//
// Both ideas are from GSPMD (Xu et al., "GSPMD: General and scalable parallelization for ML
// computation graphs", 2021), here without iteration.
#ifndef KILN_COMPILER_SHARD_PROPAGATE_H_
#define KILN_COMPILER_SHARD_PROPAGATE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/graph.h"
#include "compiler/shard/rules.h"

namespace kiln::shard {

// The layout of one value.
struct Layout {
  // The layout that the value has when it is computed by its rule. Axes of size 1 split nothing and
  // are in no list.
  Spec spec;
  // For reductions and scatters: the axes over which each device first has a partial result, and
  // the subset of them that then splits dimension `scatter_dim`, so that each device gets only its
  // part.
  std::vector<int> partial;
  int scatter_dim = -1;
  std::vector<int> scatter_axes;
  // The value depends on no input, so it can be computed in any layout.
  bool is_source = false;
};

struct Layouts {
  Mesh mesh;
  std::vector<Spec> outputs;  // without axes of size 1
  std::vector<Spec> updates;
  std::vector<const ir::Node*> order;  // operands before users
  absl::flat_hash_map<const ir::Node*, Layout> of;
};

// Requires: `graph` has a mesh and no gradient requests. Takes time linear in the graph's nodes.
Layouts Propagate(const graph::Graph& graph);

// Returns whether `node` can be computed in the layout `spec`, which differs from its own, without
// more data exchange than its operands need.
bool CanLie(const Layouts& layouts, const ir::Node* node, const Spec& spec);

// Returns the layout that each operand needs so that `node` is computed in the layout `spec`.
// Requires: `spec` is the node's own, or CanLie.
std::vector<Spec> OperandSpecs(const Layouts& layouts, const ir::Node* node, const Spec& spec);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PROPAGATE_H_
