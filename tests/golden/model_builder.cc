#include "tests/golden/model_builder.h"

#include <cstdlib>
#include <iostream>
#include <utility>

#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/simplify/simplify.h"
#include "compiler/ops/testing/build_op.h"

namespace kiln::golden {

namespace {

template <typename T>
T OrDie(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::abort();
}

}  // namespace

ModelBuilder::Node ModelBuilder::Input(ir::Shape shape, ir::DType dtype) {
  inputs_.push_back({dtype, shape});
  return ops.Input(static_cast<int64_t>(inputs_.size()) - 1, dtype, shape);
}

ModelBuilder::Node ModelBuilder::Op(const std::string& name, std::vector<Node> operands,
                                    ops::Attributes attributes) {
  return OrDie(ops::BuildOp(ops, *ops::FindOp(name), operands, attributes, ir::DType::kInvalid));
}

ModelBuilder::Node ModelBuilder::Gradient(Node y, Node x, Node upstream) {
  std::vector<Node> operands = {y, x};
  if (upstream != nullptr) operands.push_back(upstream);
  return context_->Get(ir::Op::kGradient, x->dtype(), x->shape(), std::move(operands));
}

void ModelBuilder::Update(Node input, Node value) {
  updates_.push_back({static_cast<int>(input->attr<ir::InputAttr>().index), value});
}

void ModelBuilder::Adam(Node parameter, Node gradient, Node count) {
  constexpr double kRate = 1e-3;
  constexpr double kFirst = 0.9;
  constexpr double kSecond = 0.999;
  const Node old_mean = Input(parameter->shape());
  const Node old_square = Input(parameter->shape());
  const Node mean = ops.Add(ops.Mul(old_mean, kFirst), ops.Mul(gradient, 1 - kFirst));
  const Node square =
      ops.Add(ops.Mul(old_square, kSecond), ops.Mul(ops.Mul(gradient, gradient), 1 - kSecond));
  auto correction = [&](double beta) {
    const Node power = ops.Binary(ir::Op::kPow, ops.Const(ir::DType::kFloat32, beta), count);
    return ops.Sub(ops.Const(ir::DType::kFloat32, 1), power);
  };
  const Node size = ops.Div(ops.Const(ir::DType::kFloat32, kRate), correction(kFirst));
  const Node scale = ops.Sqrt(correction(kSecond));
  const Node divisor = ops.Add(ops.Div(ops.Sqrt(square), scale), 1e-8);
  Update(parameter, ops.Sub(parameter, ops.Div(ops.Mul(mean, size), divisor)));
  Update(old_mean, mean);
  Update(old_square, square);
}

ModelBuilder::Node ModelBuilder::BatchNorm(Node x, Node weight, Node bias, bool track) {
  std::vector<int64_t> axes = {0};
  for (size_t i = 2; i < x->shape().size(); ++i) axes.push_back(static_cast<int64_t>(i));
  const Node mean = Op("mean", {x}, {{"axes", axes}});
  const Node var = Op("var", {x}, {{"axes", axes}, {"correction", 0.0}});
  if (track) {
    const Node running_mean = Input(mean->shape());
    const Node running_var = Input(var->shape());
    Update(running_mean, ops.Add(ops.Mul(running_mean, 0.9), ops.Mul(mean, 0.1)));
    Update(running_var, ops.Add(ops.Mul(running_var, 0.9), ops.Mul(var, 0.1)));
  }
  return Op("batch_norm", {x, mean, var, weight, bias});
}

graph::Graph ModelBuilder::Finish(std::shared_ptr<const graph::Sharding> sharding) {
  graph::Graph graph;
  graph.context = context_;
  graph.inputs = inputs_;
  graph.outputs = outputs_;
  graph.updates = updates_;
  graph.sharding = std::move(sharding);
  return graph::Simplify(OrDie(autodiff::Differentiate(graph)));
}

}  // namespace kiln::golden
