// One graph for all values of the variables, and the check where it holds: the interface of this
// folder for the daemon.
#ifndef KILN_COMPILER_VARIABLES_VARIABLE_GRAPH_H_
#define KILN_COMPILER_VARIABLES_VARIABLE_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/ops/form_sizes.h"
#include "compiler/variables/generalize.h"

namespace kiln::variables {

// Returns the graph at these values, which may have kGradient nodes, with expansions whose forms
// are right within the ranges of the sizes.
using SizedBuildFunction = std::function<absl::StatusOr<graph::Graph>(
    absl::Span<const int64_t> values, ops::FormSizes* sizes)>;

// Immutable. Thread-safe.
class VariableGraph {
 public:
  // Gradient requests are replaced before the graphs are compared, so that the nodes of the reverse
  // walk are masked too. UNIMPLEMENTED, with the reason, if there is no common graph; an error of
  // `build` if it fails at all values tried.
  static absl::StatusOr<VariableGraph> Make(std::vector<graph::Variable> variables,
                                            const SizedBuildFunction& build);

  // See capacity.h: the inputs are the graph's, followed by the variables' values.
  const graph::Graph& capacity() const { return capacity_; }

  // The ranges with which IsRightAt's graph is built, all within the variables' bounds.
  const ops::FormSizes& form_sizes() const { return form_sizes_; }

  // Returns whether `special`, the graph built for `values`, equals what `capacity` computes there.
  // Adds nodes to special's context.
  bool IsRightAt(const graph::Graph& special, absl::Span<const int64_t> values) const;

 private:
  VariableGraph(ops::FormSizes form_sizes, GeneralGraph general, graph::Graph capacity);

  ops::FormSizes form_sizes_;
  GeneralGraph general_;
  graph::Graph capacity_;
};

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_VARIABLE_GRAPH_H_
