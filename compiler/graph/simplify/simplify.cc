#include "compiler/graph/simplify/simplify.h"

#include <algorithm>
#include <utility>

#include "compiler/graph/rewrite_graph.h"
#include "compiler/graph/simplify/rules.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/walk.h"

namespace kiln::graph {

absl::Span<const ir::Rule> SimplifyRules() {
  static const auto& rules = *new std::vector<ir::Rule>([] {
    std::vector<ir::Rule> all;
    for (std::vector<ir::Rule> family :
         {ConstantRules(), ArithmeticRules(), CastRules(), MovementRules(), ReduceRules()}) {
      std::move(family.begin(), family.end(), std::back_inserter(all));
    }
    return all;
  }());
  return rules;
}

Graph Simplify(const Graph& graph) {
  std::vector<const ir::Node*> nodes = ir::TopologicalOrder(Roots(graph));
  bool has_gradient = std::any_of(nodes.begin(), nodes.end(), [](const ir::Node* node) {
    return node->op() == ir::Op::kGradient;
  });
  return has_gradient ? graph : RewriteGraph(graph, SimplifyRules());
}

}  // namespace kiln::graph
