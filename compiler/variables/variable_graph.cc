#include "compiler/variables/variable_graph.h"

#include <utility>

#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/verify.h"
#include "compiler/variables/capacity.h"
#include "compiler/variables/is_right_at.h"

namespace kiln::variables {

VariableGraph::VariableGraph(GeneralGraph general, graph::Graph capacity)
    : general_(std::move(general)), capacity_(std::move(capacity)) {}

absl::StatusOr<VariableGraph> VariableGraph::Make(std::vector<graph::Variable> variables,
                                                  const BuildFunction& build) {
  absl::StatusOr<GeneralGraph> general = Generalize(
      std::move(variables), [&](absl::Span<const int64_t> values) -> absl::StatusOr<graph::Graph> {
        absl::StatusOr<graph::Graph> graph = build(values);
        return graph.ok() ? autodiff::Differentiate(*graph) : graph;
      });
  if (!general.ok()) return general.status();
  absl::StatusOr<graph::Graph> capacity = AtCapacity(*general);
  if (!capacity.ok()) return capacity.status();
  if (absl::Status legal = graph::Verify(*capacity); !legal.ok()) return legal;
  return VariableGraph(*std::move(general), *std::move(capacity));
}

bool VariableGraph::IsRightAt(const graph::Graph& special, absl::Span<const int64_t> values) const {
  const absl::StatusOr<graph::Graph> differentiated = autodiff::Differentiate(special);
  return differentiated.ok() && variables::IsRightAt(general_, *differentiated, values);
}

}  // namespace kiln::variables
