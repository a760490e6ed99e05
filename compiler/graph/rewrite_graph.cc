#include "compiler/graph/rewrite_graph.h"

#include <vector>

#include "compiler/graph/verify.h"
#include "compiler/ir/walk.h"

namespace kiln::graph {

Graph RewriteGraph(const Graph& graph, absl::Span<const ir::Rule> rules) {
  std::vector<const ir::Node*> roots = Roots(graph);
  const std::vector<const ir::Node*> nodes = ir::TopologicalOrder(roots);
  ir::Rewriter rewriter(*graph.context, rules);
  for (const ir::Node*& root : roots) root = rewriter.Rewrite(root);
  Graph result = WithRoots(graph, roots);
  result.sources.clear();
  for (const ir::Node* node : nodes) {
    auto source = graph.sources.find(node);
    if (source == graph.sources.end()) continue;
    // The rewriter memoises, so for nodes reachable from the roots this is only a lookup.
    result.sources.try_emplace(rewriter.Rewrite(node), source->second);
  }
  return result;
}

}  // namespace kiln::graph
