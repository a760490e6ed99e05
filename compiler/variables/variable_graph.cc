#include "compiler/variables/variable_graph.h"

#include <utility>

#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/verify.h"
#include "compiler/variables/capacity.h"
#include "compiler/variables/is_right_at.h"
#include "compiler/variables/probes.h"

namespace kiln::variables {

namespace {

// Builds the graph at corners of the bounds, to see how small and large its sizes are. A size that
// is a sum of multiples of variables is smallest and largest at corners; of two variables, those
// that were not visited matter only to a difference.
ops::FormSizes SizesWithin(absl::Span<const graph::Variable> variables,
                           const SizedBuildFunction& build) {
  ops::FormSizes sizes;
  if (variables.size() > kVariablesMax) {
    // Generalize refuses them. They have more corners than there may be builds.
    sizes.Freeze();
    return sizes;
  }
  std::vector<int64_t> low, high;
  for (const graph::Variable& variable : variables) {
    low.push_back(variable.min);
    high.push_back(variable.max);
  }
  // An error only leaves ranges too small. Where it matters, Generalize finds it.
  const auto visit = [&](const std::vector<int64_t>& corner) {
    build(corner, &sizes).status().IgnoreError();
  };
  visit(high);
  // Most graphs have no such sizes.
  if (!sizes.empty()) {
    visit(low);
    for (size_t i = 0; i < variables.size() && variables.size() > 1; ++i) {
      std::swap(low[i], high[i]);
      visit(low);
      visit(high);
      std::swap(low[i], high[i]);
    }
  }
  sizes.Freeze();
  return sizes;
}

}  // namespace

VariableGraph::VariableGraph(ops::FormSizes form_sizes, GeneralGraph general, graph::Graph capacity)
    : form_sizes_(std::move(form_sizes)),
      general_(std::move(general)),
      capacity_(std::move(capacity)) {}

absl::StatusOr<VariableGraph> VariableGraph::Make(std::vector<graph::Variable> variables,
                                                  const SizedBuildFunction& build) {
  const ops::FormSizes sizes = SizesWithin(variables, build);
  absl::StatusOr<GeneralGraph> general = Generalize(
      std::move(variables), [&](absl::Span<const int64_t> values) -> absl::StatusOr<graph::Graph> {
        ops::FormSizes own = sizes;
        absl::StatusOr<graph::Graph> graph = build(values, &own);
        return graph.ok() ? autodiff::Differentiate(*graph) : graph;
      });
  if (!general.ok()) return general.status();
  absl::StatusOr<graph::Graph> capacity = AtCapacity(*general);
  if (!capacity.ok()) return capacity.status();
  if (absl::Status legal = graph::Verify(*capacity); !legal.ok()) return legal;
  return VariableGraph(sizes, *std::move(general), *std::move(capacity));
}

bool VariableGraph::IsRightAt(const graph::Graph& special, absl::Span<const int64_t> values) const {
  const absl::StatusOr<graph::Graph> differentiated = autodiff::Differentiate(special);
  return differentiated.ok() && variables::IsRightAt(general_, *differentiated, values);
}

}  // namespace kiln::variables
