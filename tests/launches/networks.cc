#include "tests/launches/networks.h"

#include <string>
#include <utility>

#include "tests/golden/model_builder.h"

namespace kiln::launches {
namespace {

using golden::ModelBuilder;
using ir::DType;
using Ints = std::vector<int64_t>;
using Node = const ir::Node*;

// A model and its parameters.
struct Model {
  const DType half = DType::kInvalid;
  ModelBuilder m = {};
  std::vector<Node> parameters = {};

  // Of these ops, autocast computes the first in `half`, the second in float32, if it is active.
  Node InHalf(const std::string& name, std::vector<Node> operands,
              ops::Attributes attributes = {}) {
    if (half != DType::kInvalid) {
      for (Node& operand : operands) operand = m.ops.Cast(operand, half);
    }
    return m.Op(name, std::move(operands), std::move(attributes));
  }
  Node InFloat32(const std::string& name, std::vector<Node> operands,
                 ops::Attributes attributes = {}) {
    for (Node& operand : operands) {
      if (operand->dtype() == half) operand = m.ops.Cast(operand, DType::kFloat32);
    }
    return m.Op(name, std::move(operands), std::move(attributes));
  }

  Node Parameter(ir::Shape shape) {
    parameters.push_back(m.Input(std::move(shape)));
    return parameters.back();
  }
  Node Linear(Node x, int64_t outputs) {
    const Node weight = Parameter({outputs, x->shape().back()});
    return InHalf("linear", {x, weight, Parameter({outputs})});
  }
  Node LayerNorm(Node x) {
    const Node weight = Parameter({x->shape().back()});
    return InFloat32("layer_norm", {x, weight, Parameter({x->shape().back()})});
  }
  // With batch norm.
  Node Convolution(Node x, int64_t outputs, int64_t window, int64_t stride) {
    const Node weight = Parameter({outputs, x->shape()[1], window, window});
    x = InHalf("conv2d", {x, weight},
               {{"stride", Ints{stride, stride}}, {"padding", Ints{window / 2, window / 2}}});
    if (half != DType::kInvalid) x = m.ops.Cast(x, DType::kFloat32);
    const Node scale = Parameter({outputs});
    return m.BatchNorm(x, scale, Parameter({outputs}), /*track=*/true);
  }
  Node Relu(Node x) { return m.Op("relu", {x}); }
};

Node Bottleneck(Model& model, Node x, int64_t width, int64_t stride) {
  Node y = model.Relu(model.Convolution(x, width, 1, 1));
  y = model.Relu(model.Convolution(y, width, 3, stride));
  y = model.Convolution(y, 4 * width, 1, 1);
  if (x->shape() != y->shape()) x = model.Convolution(x, 4 * width, 1, stride);
  return model.Relu(model.m.ops.Add(y, x));
}

Node Attention(Model& model, Node x, int64_t heads) {
  ModelBuilder& m = model.m;
  const int64_t batch = x->shape()[0], tokens = x->shape()[1], width = x->shape()[2];
  const Node all =
      m.ops.Reshape(model.Linear(x, 3 * width), {batch, tokens, 3, heads, width / heads});
  const auto part = [&](int64_t i) {
    const Node one =
        m.ops.Shrink(all, Ints{0, batch, 0, tokens, i, i + 1, 0, heads, 0, width / heads});
    return m.ops.Permute(m.ops.Reshape(one, {batch, tokens, heads, width / heads}), {0, 2, 1, 3});
  };
  const Node mixed =
      model.InHalf("scaled_dot_product_attention", {part(0), part(1), part(2)}, {{"causal", true}});
  return model.Linear(m.ops.Reshape(m.ops.Permute(mixed, {0, 2, 1, 3}), x->shape()), width);
}

Node TransformerBlock(Model& model, Node x, int64_t heads) {
  ModelBuilder& m = model.m;
  x = m.ops.Add(x, Attention(model, model.LayerNorm(x), heads));
  const Node wide = m.Op("gelu", {model.Linear(model.LayerNorm(x), 4 * x->shape().back())},
                         {{"approximate", std::string("tanh")}});
  return m.ops.Add(x, model.Linear(wide, x->shape().back()));
}

}  // namespace

graph::Graph ResNetStep(const ResNetSizes& sizes) {
  Model model{sizes.half};
  ModelBuilder& m = model.m;
  const Node images = m.Input({sizes.batch, 3, sizes.image, sizes.image});
  const Node labels = m.Input({sizes.batch}, DType::kInt32);
  Node x = model.Relu(model.Convolution(images, 64, 7, 2));
  x = m.Op("max_pool2d", {x},
           {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1}}});
  for (size_t stage = 0; stage < sizes.blocks.size(); ++stage) {
    for (int block = 0; block < sizes.blocks[stage]; ++block) {
      x = Bottleneck(model, x, int64_t{64} << stage, stage > 0 && block == 0 ? 2 : 1);
    }
  }
  x = m.Op("mean", {x}, {{"axes", Ints{2, 3}}});
  const Node logits = model.Linear(m.ops.Reshape(x, {sizes.batch, x->shape()[1]}), 1000);
  const Node loss = model.InFloat32("cross_entropy", {logits, labels});
  m.Output(loss);
  for (const Node parameter : model.parameters) {
    const Node old = m.Input(parameter->shape());
    const Node momentum = m.ops.Add(m.ops.Mul(old, 0.9), m.Gradient(loss, parameter));
    m.Update(old, momentum);
    m.Update(parameter, m.ops.Sub(parameter, m.ops.Mul(momentum, 0.01)));
  }
  return m.Finish();
}

graph::Graph GptStep(const GptSizes& sizes) {
  Model model{sizes.half};
  ModelBuilder& m = model.m;
  const Node tokens = m.Input({sizes.batch, sizes.tokens}, DType::kInt32);
  const Node labels = m.Input({sizes.batch * sizes.tokens}, DType::kInt32);
  const Node count = m.ops.Cast(m.Input({}, DType::kInt32), DType::kFloat32);
  const Node words = model.Parameter({sizes.words, sizes.width});
  const Node positions = model.Parameter({sizes.tokens, sizes.width});
  Node x = m.ops.Add(m.ops.Gather(words, tokens, 0), positions);
  for (int block = 0; block < sizes.blocks; ++block) x = TransformerBlock(model, x, sizes.heads);
  x = m.ops.Reshape(model.LayerNorm(x), {sizes.batch * sizes.tokens, sizes.width});
  const Node logits = model.InHalf("linear", {x, words});
  const Node loss = model.InFloat32("cross_entropy", {logits, labels});
  m.Output(loss);
  for (const Node parameter : model.parameters)
    m.Adam(parameter, m.Gradient(loss, parameter), count);
  return m.Finish();
}

}  // namespace kiln::launches
