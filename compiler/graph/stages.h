// Graphs in stages: consecutive layers on different devices, in one program.
//
// An op runs on the device of its operands; only the op "send" moves a value to another device. A
// value that depends on no input is assigned to no device, sent or not: each device computes it
// where it needs it. A gradient is on the device of the value it belongs to, and flows back through
// a send as another send. Source: GPipe, Huang et al. 2019; PipeDream, Narayanan et al. 2019.
#ifndef KILN_COMPILER_GRAPH_STAGES_H_
#define KILN_COMPILER_GRAPH_STAGES_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/walk.h"

namespace kiln::graph {

// The device of a value that depends on no input.
inline constexpr int kAnywhere = -1;
using Homes = absl::flat_hash_map<const ir::Node*, int>;

// Finds the device of each value of a graph in stages, by its number in the mesh. Errors are
// INVALID_ARGUMENT with the reason "STAGES".
class HomeFinder {
 public:
  // Requires: `graph` has passed CheckStages and outlives the HomeFinder.
  explicit HomeFinder(const Graph& graph);

  // Finds the devices of this value and of all values it depends on. Fails if an op has operands on
  // two devices, or if a send's operand is not on the send's source device.
  absl::Status Add(const ir::Node* value);
  // Call after all results are added. Fails if a result is not on its declared device.
  absl::Status CheckResults() const;
  const Homes& homes() const { return homes_; }

 private:
  absl::StatusOr<int> Find(const ir::Node* node) const;
  absl::StatusOr<int> FindOfSend(const ir::Node* send) const;
  absl::StatusOr<int> FindOfGradient(const ir::Node* gradient) const;
  absl::Status CheckResult(std::string_view what, const ir::Node* value, int wanted) const;

  const Graph& graph_;
  const Stages& stages_;
  ir::TopologicalWalk walk_;
  Homes homes_;
};

// Finds the devices of all values. Fails as HomeFinder does.
absl::StatusOr<Homes> FindHomes(const Graph& graph);

// Returns INVALID_ARGUMENT if the mesh of a graph in stages has several axes, something is split,
// or a device number is not in the mesh.
absl::Status CheckStages(const Sharding& sharding);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_STAGES_H_
