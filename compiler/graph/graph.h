// A checked tensor graph: the result of expanding every composite of the wire's graph.
#ifndef KILN_COMPILER_GRAPH_GRAPH_H_
#define KILN_COMPILER_GRAPH_GRAPH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/mesh.h"
#include "compiler/ir/node.h"

namespace kiln::graph {

struct Input {
  ir::DType dtype = ir::DType::kInvalid;
  ir::Shape shape;
};
struct Update {
  int input = 0;  // index of the input that is replaced after the run
  const ir::Node* value = nullptr;
};

// The precision at which the float32 factors of matrix products and convolutions are read.
enum class MatmulPrecision : uint8_t {
  kHighest,  // unchanged
  kHigh,     // rounded to tf32
};
// "highest", "high".
std::string_view Name(MatmulPrecision precision);
std::optional<MatmulPrecision> ParseMatmulPrecision(std::string_view name);

// Nodes belong to `context`, which is shared because passes make new graphs in it. Every node is a
// primitive and legal at the tensor level; kGradient may still occur until autodiff has run. Unused
// inputs are allowed.
struct Graph {
  std::shared_ptr<ir::Context> context;
  std::vector<Input> inputs;  // by InputAttr::index
  std::vector<const ir::Node*> outputs;
  std::vector<Update> updates;
  // The requested precision; kHighest once the factors are rounded (see round_factors.h).
  MatmulPrecision float32_matmul_precision = MatmulPrecision::kHighest;
  // Null: the graph runs on one device. Otherwise it runs on the devices of a mesh, and the shapes
  // of all nodes are those of the whole tensors.
  std::shared_ptr<const Sharding> sharding;
  // The source line of each node, for messages; a node may be missing.
  absl::flat_hash_map<const ir::Node*, std::string> sources;
};

// The text form, which irtool and golden files use. Parse(Print(g)) prints the same.
std::string Print(const Graph& graph);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_GRAPH_H_
