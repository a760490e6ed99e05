// How each primitive passes on the way its operands lie on the mesh: a row for every op.
#ifndef KILN_COMPILER_SHARD_RULES_H_
#define KILN_COMPILER_SHARD_RULES_H_

#include <cstdint>

#include "compiler/graph/mesh.h"
#include "compiler/ir/node.h"

namespace kiln::shard {

using graph::Mesh;
using graph::Spec;

enum class RuleKind : uint8_t {
  kNone,         // does not occur: gone before this, made after it, or of the kernel level
  kInput,        // as the graph says
  kConst,        // a scalar, which every device makes
  kIota,         // any way: what the place adds is known
  kElementwise,  // as its operands, which lie alike
  kReduce,       // what is split along a reduced axis becomes partial results
  kMovement,     // as far as `push` takes the operand's way
  kGather,       // split along axes that are not indexed
  kScatter,      // likewise; positions that are split become partial results of a sum
  kShard,        // as it says
};
RuleKind RuleOf(ir::Op op);

// How the result of a movement lies where its operand lies so, without anything being sent; and how
// the operand has to lie so that the result lies so. Axes that cannot stay are missing in what
// comes back.
Spec Push(const Mesh& mesh, const ir::Node* movement, const Spec& operand);
Spec Pull(const Mesh& mesh, const ir::Node* movement, const Spec& result);

// Whether the axis splits any dimension.
bool IsSplitBy(const Spec& spec, int axis);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_RULES_H_
