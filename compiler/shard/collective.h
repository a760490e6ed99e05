// Collectives: operations in which each device of a group contributes one value.
//
// The operand is published whole, or cut into one part for each device of the group, and the
// devices read it from there. `Published` and `Received` express both sides in ordinary ops, so
// both become ordinary kernels. Results are combined in the group's order, so every device gets the
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
    kAllReduce,      // every device has the combined value
    kReduceScatter,  // each device has its part of that along `split`
    kAllGather,      // each device has all parts, concatenated along `joined`
    kAllToAll,       // each has its part along `split` of all parts, concatenated along `joined`
  };
  Kind kind = Kind::kAllReduce;
  ir::Op combine = ir::Op::kAdd;  // for the first two kinds; also kMul, kMax
  std::vector<int> group;         // axes of the mesh
  int64_t devices = 1;            // number of devices in the group
  int64_t split = 0;
  int64_t joined = 0;
  const ir::Node* operand = nullptr;
  const ir::Node* result = nullptr;  // an input of the local graph

  bool is_cut() const { return kind == Kind::kReduceScatter || kind == Kind::kAllToAll; }
  bool operator==(const Collective&) const = default;
};

// Returns the shape of the result.
ir::Shape ResultShape(const Collective& collective);

// Returns the value that a device publishes: the operand, or [devices, n] with one row for each
// device's part, padded so that rows begin at multiples of kPublishedAlignment.
const ir::Node* Published(ops::Builder& builder, const Collective& collective);

// Returns how many bytes a device reads from each other device; also the stride between parts.
int64_t PartBytes(const Collective& collective);

// Returns whether the result is the parts' bytes one after the other, and the parts are so large
// that copying each one is better than selecting element by element in one kernel.
bool IsFetched(const Collective& collective);

// Returns the result, computed from the values that the device reads from each device of the group.
// Each of `parts` has the shape PartShape: the operand's shape, or [n].
ir::Shape PartShape(const Collective& collective);
const ir::Node* Received(ops::Builder& builder, const Collective& collective,
                         const std::vector<const ir::Node*>& parts);

// Returns the name, for example "all_reduce_sum".
std::string Name(const Collective& collective);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_COLLECTIVE_H_
