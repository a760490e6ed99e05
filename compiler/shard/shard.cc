#include "compiler/shard/shard.h"

#include "compiler/shard/localize.h"
#include "compiler/shard/propagate.h"
#include "compiler/shard/segments.h"

namespace kiln::shard {

Program Shard(const graph::Graph& graph) {
  const Layouts layouts = Propagate(graph);
  return Split(graph, layouts, Localize(graph, layouts));
}

}  // namespace kiln::shard
