#include "tests/golden/graphs.h"

#include <utility>

#include "tests/golden/model_builder.h"

namespace kiln::golden {

namespace {

using ir::DType;
using Node = const ir::Node*;

graph::Graph Softmax() {
  ModelBuilder m;
  m.Output(m.Op("softmax", {m.Input({64, 256})}, {{"axis", int64_t{-1}}}));
  return m.Finish();
}

// The loss and the gradient of the logits.
graph::Graph CrossEntropy() {
  ModelBuilder m;
  const Node logits = m.Input({256, 200});
  const Node labels = m.Input({256}, DType::kInt32);
  const Node loss = m.Op("cross_entropy", {logits, labels});
  m.Output(loss);
  m.Output(m.Gradient(loss, logits));
  return m.Finish();
}

// The forward pass, and all gradients for a given upstream gradient.
graph::Graph LayerNorm() {
  ModelBuilder m;
  const Node x = m.Input({128, 320});
  const Node weight = m.Input({320});
  const Node bias = m.Input({320});
  const Node upstream = m.Input({128, 320});
  const Node y = m.Op("layer_norm", {x, weight, bias});
  m.Output(y);
  for (const Node wanted : {x, weight, bias}) m.Output(m.Gradient(y, wanted, upstream));
  return m.Finish();
}

graph::Graph Attention() {
  ModelBuilder m;
  const Node query = m.Input({2, 4, 32, 16});
  const Node key = m.Input({2, 4, 32, 16});
  const Node value = m.Input({2, 4, 32, 16});
  m.Output(m.Op("scaled_dot_product_attention", {query, key, value}));
  return m.Finish();
}

Node Convolution(ModelBuilder& m, Node x, Node weight, Node bias) {
  return m.Op("relu", {m.Op("conv2d", {x, weight, bias})});
}

graph::Graph ConvolutionBiasRelu() {
  ModelBuilder m;
  m.Output(Convolution(m, m.Input({4, 8, 10, 10}), m.Input({16, 8, 3, 3}), m.Input({16})));
  return m.Finish();
}

graph::Graph ConvolutionGradients() {
  ModelBuilder m;
  const Node x = m.Input({4, 8, 10, 10});
  const Node weight = m.Input({16, 8, 3, 3});
  const Node bias = m.Input({16});
  const Node upstream = m.Input({4, 16, 8, 8});
  const Node y = Convolution(m, x, weight, bias);
  for (const Node wanted : {x, weight, bias}) m.Output(m.Gradient(y, wanted, upstream));
  return m.Finish();
}

// A convolution with stride two that halves the size: its input's gradient is one contraction.
graph::Graph StridedConvolutionGradients() {
  ModelBuilder m;
  const Node x = m.Input({4, 8, 12, 12});
  const Node weight = m.Input({16, 8, 3, 3});
  const Node upstream = m.Input({4, 16, 6, 6});
  const Node y =
      m.Op("conv2d", {x, weight},
           {{"stride", std::vector<int64_t>{2, 2}}, {"padding", std::vector<int64_t>{1, 1}}});
  for (const Node wanted : {x, weight}) m.Output(m.Gradient(y, wanted, upstream));
  return m.Finish();
}

// With overlapping windows.
graph::Graph MaxPoolGradient() {
  ModelBuilder m;
  const Node x = m.Input({2, 8, 16, 16});
  const Node upstream = m.Input({2, 8, 8, 8});
  const Node y = m.Op("max_pool2d", {x},
                      {{"kernel", std::vector<int64_t>{3, 3}},
                       {"stride", std::vector<int64_t>{2, 2}},
                       {"padding", std::vector<int64_t>{1, 1}}});
  m.Output(m.Gradient(y, x, upstream));
  return m.Finish();
}

graph::Graph BatchNormForward() {
  ModelBuilder m;
  m.Output(m.BatchNorm(m.Input({8, 16, 12, 12}), m.Input({16}), m.Input({16}), true));
  return m.Finish();
}

graph::Graph BatchNormBackward() {
  ModelBuilder m;
  const Node x = m.Input({8, 16, 12, 12});
  const Node weight = m.Input({16});
  const Node bias = m.Input({16});
  const Node upstream = m.Input({8, 16, 12, 12});
  const Node y = m.BatchNorm(x, weight, bias, false);
  for (const Node wanted : {x, weight, bias}) m.Output(m.Gradient(y, wanted, upstream));
  return m.Finish();
}

graph::Graph AdamUpdate() {
  ModelBuilder m;
  const Node count = m.ops.Cast(m.Input({}, DType::kInt32), DType::kFloat32);
  for (const ir::Shape& shape : {ir::Shape{256, 256}, ir::Shape{256}, ir::Shape{10, 256}}) {
    const Node parameter = m.Input(shape);
    const Node gradient = m.Input(shape);
    m.Adam(parameter, gradient, count);
  }
  return m.Finish();
}

graph::Graph MatmulGelu() {
  ModelBuilder m;
  const Node product = m.Op("matmul", {m.Input({48, 64}), m.Input({64, 96})});
  m.Output(m.Op("gelu", {m.ops.Add(product, m.Input({96}))}));
  return m.Finish();
}

// Looks up rows of a table, and computes the gradient of the table.
graph::Graph Embedding() {
  ModelBuilder m;
  const Node table = m.Input({50, 32});
  const Node tokens = m.Input({4, 12}, DType::kInt32);
  const Node upstream = m.Input({4, 12, 32});
  const Node rows = m.ops.Gather(table, tokens, 0);
  m.Output(rows);
  m.Output(m.Gradient(rows, table, upstream));
  return m.Finish();
}

ops::Attributes Pool2() { return {{"kernel", std::vector<int64_t>{2, 2}}}; }

}  // namespace

std::vector<KnownGraph> KnownGraphs() {
  std::vector<KnownGraph> graphs;
  graphs.push_back({"softmax", Softmax()});
  graphs.push_back({"cross_entropy", CrossEntropy()});
  graphs.push_back({"layer_norm", LayerNorm()});
  graphs.push_back({"attention", Attention()});
  graphs.push_back({"convolution_bias_relu", ConvolutionBiasRelu()});
  graphs.push_back({"convolution_gradients", ConvolutionGradients()});
  graphs.push_back({"convolution_strided_gradients", StridedConvolutionGradients()});
  graphs.push_back({"max_pool_gradient", MaxPoolGradient()});
  graphs.push_back({"batch_norm_forward", BatchNormForward()});
  graphs.push_back({"batch_norm_backward", BatchNormBackward()});
  graphs.push_back({"adam", AdamUpdate()});
  graphs.push_back({"matmul_gelu", MatmulGelu()});
  graphs.push_back({"embedding", Embedding()});
  return graphs;
}

KnownGraph ConvnetStep(const ConvnetSizes& sizes) {
  ModelBuilder m;
  const Node images = m.Input({sizes.batch, 1, sizes.image, sizes.image});
  const Node labels = m.Input({sizes.batch}, DType::kInt32);
  const Node count = m.ops.Cast(m.Input({}, DType::kInt32), DType::kFloat32);
  std::vector<Node> parameters;
  auto parameter = [&](ir::Shape shape) {
    parameters.push_back(m.Input(std::move(shape)));
    return parameters.back();
  };
  auto convolution = [&](Node x, int64_t outputs, int64_t kernel) {
    const Node weight = parameter({outputs, x->shape()[1], kernel, kernel});
    return Convolution(m, x, weight, parameter({outputs}));
  };
  Node x = images;
  for (const int64_t block : {0, 1}) {
    const int64_t channels = sizes.channels * (block + 1);
    const int64_t kernel = block == 0 ? sizes.first_kernel : 3;
    x = convolution(convolution(x, channels, kernel), channels, kernel);
    const Node weight = parameter({channels});
    x = m.Op("max_pool2d", {m.BatchNorm(x, weight, parameter({channels}), true)}, Pool2());
  }
  x = m.ops.Reshape(x, {sizes.batch, ir::NumElements(x->shape()) / sizes.batch});
  const Node weight = parameter({10, x->shape()[1]});
  const Node logits = m.Op("linear", {x, weight, parameter({10})});
  const Node loss = m.Op("cross_entropy", {logits, labels});
  m.Output(loss);
  const std::vector<Node> all = parameters;
  for (const Node p : all) m.Adam(p, m.Gradient(loss, p), count);
  return {"convnet_step", m.Finish()};
}

KnownGraph TransformerStep(const TransformerSizes& sizes) {
  ModelBuilder m;
  const Node tokens = m.Input({sizes.batch, sizes.tokens}, DType::kInt32);
  const Node labels = m.Input({sizes.batch * sizes.tokens}, DType::kInt32);
  const Node count = m.ops.Cast(m.Input({}, DType::kInt32), DType::kFloat32);
  std::vector<Node> parameters;
  auto parameter = [&](ir::Shape shape) {
    parameters.push_back(m.Input(std::move(shape)));
    return parameters.back();
  };
  auto linear = [&](Node x, int64_t outputs) {
    const Node weight = parameter({outputs, x->shape().back()});
    return m.Op("linear", {x, weight, parameter({outputs})});
  };
  auto norm = [&](Node x) {
    const Node weight = parameter({sizes.width});
    return m.Op("layer_norm", {x, weight, parameter({sizes.width})});
  };
  auto heads = [&](Node x) {
    const Node split =
        m.ops.Reshape(x, {sizes.batch, sizes.tokens, sizes.heads, sizes.width / sizes.heads});
    return m.ops.Permute(split, {0, 2, 1, 3});
  };
  Node x = m.ops.Gather(parameter({sizes.words, sizes.width}), tokens, 0);
  const Node normal = norm(x);
  const Node query = heads(linear(normal, sizes.width));
  const Node key = heads(linear(normal, sizes.width));
  const Node value = heads(linear(normal, sizes.width));
  const Node mixed = m.Op("scaled_dot_product_attention", {query, key, value}, {{"causal", true}});
  const Node joined = m.ops.Reshape(m.ops.Permute(mixed, {0, 2, 1, 3}), x->shape());
  x = m.ops.Add(x, linear(joined, sizes.width));
  x = m.ops.Add(x, linear(m.Op("gelu", {linear(norm(x), 4 * sizes.width)}), sizes.width));
  x = m.ops.Reshape(norm(x), {sizes.batch * sizes.tokens, sizes.width});
  const Node loss = m.Op("cross_entropy", {linear(x, sizes.words), labels});
  m.Output(loss);
  const std::vector<Node> all = parameters;
  for (const Node p : all) m.Adam(p, m.Gradient(loss, p), count);
  return {"transformer_step", m.Finish()};
}

}  // namespace kiln::golden
