// One graph for all values of the variables, and the check where it holds: the interface of this
// folder for the daemon.
#ifndef KILN_COMPILER_VARIABLES_VARIABLE_GRAPH_H_
#define KILN_COMPILER_VARIABLES_VARIABLE_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/variables/generalize.h"

namespace kiln::variables {

// Immutable. Thread-safe.
class VariableGraph {
 public:
  // Gradient requests are replaced before the graphs are compared, so that the nodes of the reverse
  // walk are masked too. UNIMPLEMENTED, with the reason, if there is no common graph; an error of
  // `build` if it fails at all values tried.
  static absl::StatusOr<VariableGraph> Make(std::vector<graph::Variable> variables,
                                            const BuildFunction& build);

  // See capacity.h: the inputs are the graph's, followed by the variables' values.
  const graph::Graph& capacity() const { return capacity_; }

  // Returns whether `special`, the graph built for `values`, equals what `capacity` computes there.
  // Adds nodes to special's context.
  bool IsRightAt(const graph::Graph& special, absl::Span<const int64_t> values) const;

 private:
  VariableGraph(GeneralGraph general, graph::Graph capacity);

  GeneralGraph general_;
  graph::Graph capacity_;
};

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_VARIABLE_GRAPH_H_
