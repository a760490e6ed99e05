// How each primitive passes on its operands' layouts on the mesh: a row for every op.
#ifndef KILN_COMPILER_SHARD_RULES_H_
#define KILN_COMPILER_SHARD_RULES_H_

#include <cstdint>

#include "compiler/graph/mesh.h"
#include "compiler/ir/node.h"

namespace kiln::shard {

using graph::Mesh;
using graph::Spec;

enum class RuleKind : uint8_t {
  kNone,         // cannot occur: removed earlier, made later, or of the kernel level
  kInput,        // as the graph says
  kConst,        // a scalar, which every device computes
  kIota,         // any layout: the offset of the part is known
  kElementwise,  // the layout of its operands, which is the same for all
  kReduce,       // splits along a reduced axis give partial results
  kMovement,     // as far as `push` keeps the operand's layout
  kGather,       // split along axes that are not indexed
  kScatter,      // the same; split positions give partial results of a sum
  kShard,        // the layout that its attribute gives
};
RuleKind RuleOf(ir::Op op);

// Push returns the layout that a movement's result has, without communication, if its operand has
// the given layout; Pull returns the operand's layout that gives the result's. Axes that cannot be
// kept are missing in the returned spec.
Spec Push(const Mesh& mesh, const ir::Node* movement, const Spec& operand);
Spec Pull(const Mesh& mesh, const ir::Node* movement, const Spec& result);

// Returns whether the axis splits any dimension.
bool IsSplitBy(const Spec& spec, int axis);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_RULES_H_
