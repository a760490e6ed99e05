// How every value of a sharded graph lies: from the specs of inputs, outputs and hints, by the
// rules of rules.h.
//
//  * Backward, wishes: what lies how in the end says how the sums that it is made of would best
//    lie. An optimizer's moments that are split make the gradient's all-reduce a reduce-scatter.
//  * Forward, choices: an elementwise result takes the splits of all its operands, as far as they
//    agree, since cutting a part out of what each device has costs nothing. Where two operands
//    want one axis of the mesh for different dimensions, what was hinted at wins, then what comes
//    from data, then state (updated inputs), and among equals the larger one; the others are
//    moved.
//
// The idea of both is GSPMD's (Xu et al., "GSPMD: General and scalable parallelization for ML
// computation graphs", 2021), here without iteration.
#ifndef KILN_COMPILER_SHARD_PROPAGATE_H_
#define KILN_COMPILER_SHARD_PROPAGATE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/graph.h"
#include "compiler/shard/rules.h"

namespace kiln::shard {

// How one value is computed.
struct Layout {
  // How it lies when it is computed as its rule says. Axes of size 1 split nothing and are in no
  // list.
  Spec spec;
  // Of reductions and scatters: the axes over which each device has a partial result at first, and
  // those of them which then split dimension `scatter_dim`, each device getting its part alone.
  std::vector<int> partial;
  int scatter_dim = -1;
  std::vector<int> scatter_axes;
  // No input is in it, so it can be computed in any way.
  bool is_source = false;
};

struct Layouts {
  Mesh mesh;
  std::vector<Spec> outputs;  // without axes of size 1
  std::vector<Spec> updates;
  std::vector<const ir::Node*> order;  // operands before users
  absl::flat_hash_map<const ir::Node*, Layout> of;
};

// `graph` has a mesh and no gradient requests. Linear in the graph's nodes.
Layouts Propagate(const graph::Graph& graph);

// Whether `node` can be computed so that it lies so, other than as its layout says, without
// anything being sent for it that is not sent for its operands.
bool CanLie(const Layouts& layouts, const ir::Node* node, const Spec& spec);

// How each operand has to lie for `node` to be computed so that it lies as `spec`, which is its
// layout's or one that CanLie.
std::vector<Spec> OperandSpecs(const Layouts& layouts, const ir::Node* node, const Spec& spec);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_PROPAGATE_H_
