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

Program OnOneDevice(const graph::Graph& graph) {
  Program program;
  Segment& segment = program.segments.emplace_back();
  segment.graph = graph;
  const auto add = [&](Buffer::Kind kind, size_t index, int64_t bytes) -> Access {
    program.buffers.push_back({.kind = kind, .index = static_cast<int>(index), .bytes = bytes});
    return {.buffer = static_cast<int>(program.buffers.size()) - 1, .bytes = bytes};
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const int64_t bytes = ir::BytesOf(graph.inputs[i].dtype, graph.inputs[i].shape);
    segment.inputs.push_back(add(Buffer::Kind::kInput, i, bytes));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    segment.results.push_back(add(Buffer::Kind::kOutput, i, ir::BytesOf(graph.outputs[i])));
  for (size_t i = 0; i < graph.updates.size(); ++i) {
    const int64_t bytes = ir::BytesOf(graph.updates[i].value);
    segment.results.push_back(add(Buffer::Kind::kUpdate, i, bytes));
  }
  return program;
}

}  // namespace kiln::shard
