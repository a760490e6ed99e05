// Graphs in stages: layers on one device and the next ones on another, in one program.
//
// An op runs where its operands lie, and only the op "send" leads to another device. What is made
// of no input belongs to no device, sent or not: each makes it where it needs it. A gradient lies
// where the value lies that it is of, and flows back through a send as another one. Source: GPipe,
// Huang et al. 2019; PipeDream, Narayanan et al. 2019.
#ifndef KILN_COMPILER_GRAPH_STAGES_H_
#define KILN_COMPILER_GRAPH_STAGES_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/walk.h"

namespace kiln::graph {

// Of what is made of no input.
inline constexpr int kAnywhere = -1;
using Homes = absl::flat_hash_map<const ir::Node*, int>;

// Finds the device of each value of a graph in stages, by its number in the mesh. Errors are
// INVALID_ARGUMENT with the reason "STAGES".
class HomeFinder {
 public:
  // `graph` outlives it, and has passed CheckStages.
  explicit HomeFinder(const Graph& graph);

  // Of this value and of all that it is made of. An error where an op has operands on two devices,
  // or a send's operand is not where it comes from.
  absl::Status Add(const ir::Node* value);
  // Once all results are added: an error where one is not where it is to be.
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

// Of all values. The errors of HomeFinder.
absl::StatusOr<Homes> FindHomes(const Graph& graph);

// INVALID_ARGUMENT where the mesh of a graph in stages has several axes, something is split, or a
// device has a number that the mesh does not have.
absl::Status CheckStages(const Sharding& sharding);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_STAGES_H_
