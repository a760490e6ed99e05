#include "compiler/shard/shard.h"

#include "compiler/shard/localize.h"
#include "compiler/shard/propagate.h"
#include "compiler/shard/segments.h"
#include "compiler/shard/stages.h"

namespace kiln::shard {

Program Shard(const graph::Graph& graph) {
  if (graph.sharding->stages) return SplitStages(graph);
  const Layouts layouts = Propagate(graph);
  return Split(graph, layouts, Localize(graph, layouts));
}

}  // namespace kiln::shard
