// Decides when each device of a graph in stages sends what, so that the devices work in parallel.
#ifndef KILN_COMPILER_SHARD_SEND_ORDER_H_
#define KILN_COMPILER_SHARD_SEND_ORDER_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/graph/stages.h"

namespace kiln::shard {

// Time is cut into slots. Devices meet between slots; a value sent in one slot arrives in the next.
struct SendOrder {
  int slots = 1;
  // The slot in which a value is computed on its device; for a send to another device, the slot in
  // which its result arrives. Values that belong to no device have none.
  absl::flat_hash_map<const ir::Node*, int> slot_of;

  int Of(const ir::Node* node) const { return slot_of.at(node); }
};

// Returns whether the node moves a value from one device to another. If not, a send is equal to its
// operand, which every device computes for itself or which is already there.
bool IsTransfer(const graph::Homes& homes, const ir::Node* node);

// The maximum number of sends in a graph, gradients included; there are at most as many barriers.
inline constexpr int kSendsMax = 4096;
// Returns INVALID_ARGUMENT ("TOO_LARGE") if a graph in stages has more transfers between devices.
absl::Status CheckSends(const graph::Graph& graph);

// In each slot a device works for one send: the first in the graph's order whose operands have
// arrived. It also takes all other sends that need no further sums, gathers or scatters. So the
// parts of a batch follow one another through the stages (GPipe), and a device that waits for one
// part works on the next. Values that no send needs are computed as early as possible. Quadratic in
// the number of sends, linear in the nodes between them.
SendOrder OrderSends(const graph::Graph& graph, const graph::Homes& homes);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_SEND_ORDER_H_
