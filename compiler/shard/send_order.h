// When each device of a graph in stages sends what: the order by which devices work at once.
#ifndef KILN_COMPILER_SHARD_SEND_ORDER_H_
#define KILN_COMPILER_SHARD_SEND_ORDER_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/graph/stages.h"

namespace kiln::shard {

// Time is cut into slots. Devices meet between slots; what was sent in one arrives in the next.
struct SendOrder {
  int slots = 1;
  // The slot in which a value is computed where it lies. Of a send that leads to another device:
  // the one in which its result arrives. What lies anywhere has none.
  absl::flat_hash_map<const ir::Node*, int> slot_of;

  int Of(const ir::Node* node) const { return slot_of.at(node); }
};

// Whether the node takes a value from one device to another. Else a send is its operand, which
// every device makes for itself or which is there already.
bool IsTransfer(const graph::Homes& homes, const ir::Node* node);

// In a graph, gradients included: the devices meet as often, at most.
inline constexpr int kSendsMax = 4096;
// INVALID_ARGUMENT ("TOO_LARGE") where a graph in stages takes more values from device to device.
absl::Status CheckSends(const graph::Graph& graph);

// In each slot a device works for one send, the first in the graph's order whose operands have
// arrived, with all others that take no more sums, gathers or scatters than it does. So the parts
// of a batch go through the stages one behind the other (GPipe), and a device that waits for the
// one takes up the next. What no send needs is computed as soon as it can be. Quadratic in the
// sends, linear in the nodes between them.
SendOrder OrderSends(const graph::Graph& graph, const graph::Homes& homes);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_SEND_ORDER_H_
