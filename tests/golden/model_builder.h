// Builds graphs as a client does: ops by name, gradients as requests, Adam as updates.
#ifndef KILN_TESTS_GOLDEN_MODEL_BUILDER_H_
#define KILN_TESTS_GOLDEN_MODEL_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/builder.h"

namespace kiln::golden {

// Ends the process if a graph is malformed, since this is test code.
class ModelBuilder {
 public:
  using Node = const ir::Node*;

  ModelBuilder() : context_(std::make_shared<ir::Context>()), ops(*context_) {}

  Node Input(ir::Shape shape, ir::DType dtype = ir::DType::kFloat32);
  // The op of this name, expanded.
  Node Op(const std::string& name, std::vector<Node> operands, ops::Attributes attributes = {});
  // Requests dy/dx; with `upstream` if y is not a scalar.
  Node Gradient(Node y, Node x, Node upstream = nullptr);
  void Output(Node node) { outputs_.push_back(node); }
  // After the run, `input` (made by Input) holds `value`.
  void Update(Node input, Node value);
  // An Adam step of `parameter` with fresh inputs for its moments. `count` is the number of steps.
  void Adam(Node parameter, Node gradient, Node count);
  // Batch norm with the batch's own statistics; if `track`, with updates of new inputs for running
  // statistics.
  Node BatchNorm(Node x, Node weight, Node bias, bool track);

  // Returns the graph, differentiated and simplified; on a mesh, if `sharding` is given for its
  // inputs and outputs.
  graph::Graph Finish(std::shared_ptr<const graph::Sharding> sharding = nullptr);

 private:
  std::shared_ptr<ir::Context> context_;
  std::vector<graph::Input> inputs_;
  std::vector<Node> outputs_;
  std::vector<graph::Update> updates_;

 public:
  ops::Builder ops;
};

}  // namespace kiln::golden

#endif  // KILN_TESTS_GOLDEN_MODEL_BUILDER_H_
