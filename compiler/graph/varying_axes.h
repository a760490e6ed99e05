// Finds the axes along which a value may differ from element to element.
#ifndef KILN_COMPILER_GRAPH_VARYING_AXES_H_
#define KILN_COMPILER_GRAPH_VARYING_AXES_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"
#include "compiler/ir/walk.h"

namespace kiln::graph {

// Memoises, so that many questions about one graph take linear time.
class VaryingAxes {
 public:
  // Returns for each axis whether it is longer than 1 and the value may vary along it. A value is
  // known not to vary along an axis that was expanded, for example.
  std::vector<bool> Of(const ir::Node* node);

 private:
  std::vector<bool> Compute(const ir::Node* node) const;

  ir::TopologicalWalk walk_;
  absl::flat_hash_map<const ir::Node*, std::vector<bool>> axes_;
};

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_VARYING_AXES_H_
