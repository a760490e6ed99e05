#include "compiler/graph/simplify.h"

#include <algorithm>
#include <utility>

#include "compiler/graph/simplify_rules.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/walk.h"

namespace kiln::graph {

absl::Span<const ir::Rule> SimplifyRules() {
  static const auto& rules = *new std::vector<ir::Rule>([] {
    std::vector<ir::Rule> all;
    for (std::vector<ir::Rule> family :
         {ConstantRules(), ArithmeticRules(), MovementRules(), ReduceRules()}) {
      std::move(family.begin(), family.end(), std::back_inserter(all));
    }
    return all;
  }());
  return rules;
}

Graph Simplify(const Graph& graph) {
  std::vector<const ir::Node*> roots = Roots(graph);
  std::vector<const ir::Node*> nodes = ir::TopologicalOrder(roots);
  bool has_gradient = std::any_of(nodes.begin(), nodes.end(), [](const ir::Node* node) {
    return node->op() == ir::Op::kGradient;
  });
  if (has_gradient) return graph;

  ir::Rewriter rewriter(*graph.context, SimplifyRules());
  for (const ir::Node*& root : roots) root = rewriter.Rewrite(root);
  Graph result = WithRoots(graph, roots);
  result.sources.clear();
  for (const ir::Node* node : nodes) {
    auto source = graph.sources.find(node);
    if (source == graph.sources.end()) continue;
    result.sources.try_emplace(rewriter.Rewrite(node), source->second);
  }
  return result;
}

}  // namespace kiln::graph
