// Builds graphs the way a client does: ops by name, gradients as requests, Adam as updates.
#ifndef KILN_TESTS_GOLDEN_MODEL_BUILDER_H_
#define KILN_TESTS_GOLDEN_MODEL_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/builder.h"

namespace kiln::golden {

// Ends the process on a malformed graph: these are tests.
class ModelBuilder {
 public:
  using Node = const ir::Node*;

  ModelBuilder() : context_(std::make_shared<ir::Context>()), ops(*context_) {}

  Node Input(ir::Shape shape, ir::DType dtype = ir::DType::kFloat32);
  // The op of this name, expanded.
  Node Op(const std::string& name, std::vector<Node> operands, ops::Attributes attributes = {});
  // A request for dy/dx; with `upstream` for y that is no scalar.
  Node Gradient(Node y, Node x, Node upstream = nullptr);
  void Output(Node node) { outputs_.push_back(node); }
  // `input` (made by Input) holds `value` after the run.
  void Update(Node input, Node value);
  // An Adam step of `parameter` with fresh inputs for its moments. `count` is the number of steps.
  void Adam(Node parameter, Node gradient, Node count);
  // Batch norm with the batch's own statistics, and updates of fresh inputs for running ones if
  // asked for.
  Node BatchNorm(Node x, Node weight, Node bias, bool track);

  // Differentiated and simplified; on a mesh, if one is given for its inputs and outputs.
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
