// What devices of a group make together of one value each.
//
// The operand is published as it is, or cut into a part for each device of the group, and read by
// them from there: `Published` and `Received` say in ordinary ops how. Both sides are kernels like
// all others, and the order in which results are added up is the group's, so every device gets the
// same bits.
#ifndef KILN_COMPILER_SHARD_COLLECTIVE_H_
#define KILN_COMPILER_SHARD_COLLECTIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/mesh.h"
#include "compiler/ir/node.h"
#include "compiler/ops/builder.h"

namespace kiln::shard {

struct Collective {
  enum class Kind {
    kAllReduce,      // everybody has the combined value
    kReduceScatter,  // each has its part of it along `split`
    kAllGather,      // everybody has all parts, put together along `joined`
    kAllToAll,       // each has its part along `split` of all parts along `joined`
  };
  Kind kind = Kind::kAllReduce;
  ir::Op combine = ir::Op::kAdd;  // of the first two: also kMul, kMax
  std::vector<int> group;         // the mesh's axes
  int64_t devices = 1;            // in the group
  int64_t split = 0;
  int64_t joined = 0;
  const ir::Node* operand = nullptr;
  const ir::Node* result = nullptr;  // an input of the local graph

  bool is_cut() const { return kind == Kind::kReduceScatter || kind == Kind::kAllToAll; }
  bool operator==(const Collective&) const = default;
};

// The result's shape.
ir::Shape ResultShape(const Collective& collective);

// What a device publishes: the operand, or [devices, n], a row for each device's part of it, padded
// so that rows begin at multiples of kPublishedAlignment.
const ir::Node* Published(ops::Builder& builder, const Collective& collective);

// Bytes of what a device reads of each other one, and of the way from one part to the next.
int64_t PartBytes(const Collective& collective);

// Whether the result is nothing but one part's bytes behind the other's, and there are so many of
// them that each part is better copied on its own than chosen element by element in one kernel.
bool IsFetched(const Collective& collective);

// The result, made of what the device reads of each device of the group: values of the operand's
// shape, or of shape [n].
ir::Shape PartShape(const Collective& collective);
const ir::Node* Received(ops::Builder& builder, const Collective& collective,
                         const std::vector<const ir::Node*>& parts);

// "all_reduce_sum".
std::string Name(const Collective& collective);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_COLLECTIVE_H_
