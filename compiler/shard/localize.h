// Builds one device's part of every value: nodes of local shapes, and collectives where a value
// must change its layout or partial results must be combined.
#ifndef KILN_COMPILER_SHARD_LOCALIZE_H_
#define KILN_COMPILER_SHARD_LOCALIZE_H_

#include <memory>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/shard/collective.h"
#include "compiler/shard/propagate.h"

namespace kiln::shard {

// The inputs are the graph's, then the place (int64, an element for each axis of the mesh), then
// the collectives' results.
struct LocalGraph {
  std::shared_ptr<ir::Context> context;
  std::vector<graph::Input> inputs;  // without the collectives' results
  std::vector<const ir::Node*> outputs;
  std::vector<const ir::Node*> updates;
  std::vector<Collective> collectives;  // each after those that its operand needs
  absl::flat_hash_map<const ir::Node*, std::string> sources;

  int place() const { return static_cast<int>(inputs.size()) - 1; }
  int first_result() const { return static_cast<int>(inputs.size()); }
};

// `layouts` are those of `graph`. Takes time linear in the graph's nodes.
LocalGraph Localize(const graph::Graph& graph, const Layouts& layouts);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_LOCALIZE_H_
