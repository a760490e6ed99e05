// One graph for all values of the variables, and the knowledge of where it holds: what the daemon
// uses of this folder.
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
  // Gradient requests are fulfilled before the graphs are laid over each other, so that what a
  // reverse walk adds is masked too. UNIMPLEMENTED, saying why, if there is no one graph; an error
  // of `build` if it fails wherever it is tried.
  static absl::StatusOr<VariableGraph> Make(std::vector<graph::Variable> variables,
                                            const BuildFunction& build);

  // See capacity.h: its inputs are the graph's, then the variables' values.
  const graph::Graph& capacity() const { return capacity_; }

  // Whether `special`, the graph built for `values`, is what `capacity` computes there. Adds nodes
  // to special's context.
  bool IsRightAt(const graph::Graph& special, absl::Span<const int64_t> values) const;

 private:
  VariableGraph(GeneralGraph general, graph::Graph capacity);

  GeneralGraph general_;
  graph::Graph capacity_;
};

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_VARIABLE_GRAPH_H_
