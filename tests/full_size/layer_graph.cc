// Implements MakeGraph of layer.h.
#include <cstdlib>
#include <iostream>

#include "tests/full_size/layer.h"
#include "tests/golden/model_builder.h"

namespace kiln::full_size {
namespace {

using ir::DType;
using ir::Shape;
using Ints = std::vector<int64_t>;
using NodePointer = const ir::Node*;

class LayerBuilder {
 public:
  LayerBuilder(const Layer& layer, int64_t batch, DType dtype)
      : layer_(layer), batch_(batch), dtype_(dtype) {}

  graph::Graph Build() {
    if (layer_.kind == "adam") return BuildAdam();
    NodePointer y = BuildKind();
    for (const std::string& name : layer_.after) y = Then(y, name);
    m_.Output(y);
    const std::vector<NodePointer> wanted = wanted_;
    const NodePointer upstream = y->shape().empty() ? nullptr : Given(y->shape());
    for (const NodePointer x : wanted) m_.Output(m_.Gradient(y, x, upstream));
    return m_.Finish();
  }

 private:
  // Wanted creates an input with a gradient, Given one without.
  NodePointer Wanted(Shape shape) {
    wanted_.push_back(Given(std::move(shape)));
    return wanted_.back();
  }
  NodePointer Given(Shape shape) { return m_.Input(std::move(shape), dtype_); }
  NodePointer Indices(Shape shape) { return m_.Input(std::move(shape), DType::kInt32); }

  Shape Batched(const Shape& shape) const {
    Shape batched = {batch_};
    batched.insert(batched.end(), shape.begin(), shape.end());
    return batched;
  }
  size_t rank() const { return layer_.shape.size() - 1; }  // spatial dimensions
  int64_t Number(size_t i) const { return layer_.numbers.at(i); }
  // Returns an option, or its default, for each of `count` dimensions.
  Ints Option(char letter, int64_t otherwise, size_t count) const {
    const auto found = layer_.options.find(letter);
    if (found == layer_.options.end()) return Ints(count, otherwise);
    return found->second.size() == 1 ? Ints(count, found->second[0]) : found->second;
  }
  int64_t Option(char letter, int64_t otherwise) const { return Option(letter, otherwise, 1)[0]; }
  bool Has(const std::string& word) const {
    for (const std::string& after : layer_.after) {
      if (after == word) return true;
    }
    return false;
  }
  std::string Ranked(const std::string& name) const { return name + std::to_string(rank()) + "d"; }

  NodePointer BuildKind() {
    const std::string& kind = layer_.kind;
    const Shape& shape = layer_.shape;
    if (kind == "conv") return Convolution();
    if (kind == "deconv") return Deconvolution();
    if (kind == "maxpool" || kind == "avgpool") return Pool();
    if (kind == "attention") return Attention();
    if (kind == "lstm" || kind == "gru") return Cell();
    const bool makes_inputs = kind == "embedding" || kind == "cross_entropy" || kind == "matmul";
    const NodePointer x = makes_inputs ? nullptr : Wanted(Batched(shape));
    if (kind == "of") return x;
    if (kind == "sum") return m_.ops.Sum(x, layer_.numbers);
    if (kind == "max") return m_.ops.Max(x, layer_.numbers);
    if (kind == "permute") return m_.ops.Permute(x, layer_.numbers);
    if (kind == "globalpool") return m_.Op("mean", {x}, {{"axes", SpatialAxes()}});
    if (kind == "linear") return m_.Op("linear", {x, Wanted({Number(0), shape.back()})});
    if (kind == "matmul") return Product();
    if (kind == "resize") {
      const std::string mode = Has("linear") ? "linear" : "nearest";
      return m_.Op("interpolate", {x}, {{"size", Ints(rank(), Number(0))}, {"mode", mode}});
    }
    if (kind == "shuffle") return m_.Op("pixel_shuffle", {x}, {{"factor", Number(0)}});
    if (kind == "concat") {
      Shape other = Batched(shape);
      other[1] = Number(0);
      return m_.Op("concat", {x, Wanted(other)}, {{"axis", int64_t{1}}});
    }
    if (kind == "mse") return m_.Op("mse_loss", {x, Given(Batched(shape))});
    if (kind == "bce") {
      return m_.Op("binary_cross_entropy_with_logits", {x, Given(Batched(shape))});
    }
    if (kind == "embedding") {
      return m_.Op("gather", {Wanted({Number(0), shape.back()}), Indices({batch_, shape[0]})},
                   {{"axis", int64_t{0}}});
    }
    if (kind == "cross_entropy") {
      const int64_t rows = shape.size() == 1 ? batch_ : batch_ * shape[0];
      return m_.Op("cross_entropy", {Wanted({rows, shape.back()}), Indices({rows})});
    }
    std::cerr << "no layer of kind " << kind << "\n";
    std::abort();
  }

  NodePointer Product() {
    const int64_t transposed = Option('t', 0);
    Shape left = Batched(layer_.shape);
    const size_t last = left.size() - 1;
    Shape right = left;
    right[last - 1] = left[last];
    right[last] = Number(0);
    auto wanted = [&](Shape shape, bool turned) {
      if (!turned) return Wanted(std::move(shape));
      std::swap(shape[last - 1], shape[last]);
      return m_.ops.Transpose(Wanted(std::move(shape)), -2, -1);
    };
    return m_.Op("matmul", {wanted(left, transposed % 2 != 0), wanted(right, transposed / 2 != 0)});
  }

  Ints SpatialAxes() const {
    Ints axes;
    for (size_t i = 0; i < rank(); ++i) axes.push_back(static_cast<int64_t>(2 + i));
    return axes;
  }

  ops::Attributes Sliding() const {
    return {{"stride", Option('s', 1, rank())},
            {"padding", Option('p', 0, rank())},
            {"dilation", Option('d', 1, rank())},
            {"groups", Option('g', 1)}};
  }

  NodePointer Convolution() {
    NodePointer x = Wanted(Batched(layer_.shape));
    const Ints window = Option('k', 1, rank());
    Shape weight = {Number(0), layer_.shape[0] / Option('g', 1)};
    weight.insert(weight.end(), window.begin(), window.end());
    if (Has("causal")) {
      const int64_t back = (window[0] - 1) * Option('d', 1);
      x = m_.ops.Pad(x, Ints{0, 0, 0, 0, back, 0});
    }
    return m_.Op(Ranked("conv"), {x, Wanted(weight)}, Sliding());
  }

  NodePointer Deconvolution() {
    const NodePointer x = Wanted(Batched(layer_.shape));
    const Ints window = Option('k', 1, rank());
    Shape weight = {layer_.shape[0], Number(0) / Option('g', 1)};
    weight.insert(weight.end(), window.begin(), window.end());
    ops::Attributes attributes = Sliding();
    attributes["output_padding"] = Option('o', 0, rank());
    return m_.Op(Ranked("conv_transpose"), {x, Wanted(weight)}, attributes);
  }

  NodePointer Pool() {
    const NodePointer x = Wanted(Batched(layer_.shape));
    const Ints window = Option('k', 2, rank());
    return m_.Op(Ranked(layer_.kind == "maxpool" ? "max_pool" : "avg_pool"), {x},
                 {{"kernel", window},
                  {"stride", Option('s', window[0], rank())},
                  {"padding", Option('p', 0, rank())}});
  }

  NodePointer Attention() {
    Shape keys = layer_.shape;
    keys[1] = Option('k', keys[1]);
    const NodePointer query = Wanted(Batched(layer_.shape));
    const NodePointer key = Wanted(Batched(keys));
    const NodePointer value = Wanted(Batched(keys));
    return m_.Op("scaled_dot_product_attention", {query, key, value}, {{"causal", Has("causal")}});
  }

  // One step of a recurrent cell, from the products with both weights.
  NodePointer Cell() {
    const int64_t hidden = Number(0);
    const bool is_lstm = layer_.kind == "lstm";
    const int64_t gates = is_lstm ? 4 : 3;
    const NodePointer x = Wanted({batch_, layer_.shape[0]});
    const NodePointer h = Wanted({batch_, hidden});
    auto linear = [&](NodePointer from, int64_t size) {
      return m_.Op("linear", {from, Wanted({gates * hidden, size}), Wanted({gates * hidden})});
    };
    const NodePointer of_x = linear(x, layer_.shape[0]);
    const NodePointer of_h = linear(h, hidden);
    auto gate = [&](NodePointer from, int64_t i) {
      return m_.ops.Slice(from, 1, i * hidden, (i + 1) * hidden);
    };
    auto sum = [&](int64_t i) { return m_.ops.Add(gate(of_x, i), gate(of_h, i)); };
    auto sigmoid = [&](NodePointer from) { return m_.Op("sigmoid", {from}); };
    auto tanh = [&](NodePointer from) { return m_.Op("tanh", {from}); };
    if (is_lstm) {
      const NodePointer cell = m_.ops.Add(m_.ops.Mul(sigmoid(sum(1)), Wanted({batch_, hidden})),
                                   m_.ops.Mul(sigmoid(sum(0)), tanh(sum(2))));
      return m_.ops.Mul(sigmoid(sum(3)), tanh(cell));
    }
    const NodePointer candidate =
        tanh(m_.ops.Add(gate(of_x, 2), m_.ops.Mul(sigmoid(sum(0)), gate(of_h, 2))));
    const NodePointer update = sigmoid(sum(1));
    return m_.ops.Add(candidate, m_.ops.Mul(update, m_.ops.Sub(h, candidate)));
  }

  NodePointer Then(NodePointer x, const std::string& name) {
    const Shape& shape = x->shape();
    if (name == "causal" || name == "linear" || name == "nearest") return x;  // see BuildKind
    if (name == "bias") {
      const bool is_linear = layer_.kind == "linear";
      const NodePointer bias = Wanted({is_linear ? shape.back() : shape[1]});
      if (is_linear) return m_.ops.Add(x, bias);
      return m_.ops.Add(x, m_.ops.Reshape(bias, ChannelShape(shape)));
    }
    if (name == "bn") return m_.BatchNorm(x, Wanted({shape[1]}), Wanted({shape[1]}), false);
    if (name == "in") return m_.Op("instance_norm", {x, Wanted({shape[1]}), Wanted({shape[1]})});
    if (name == "gn") {
      return m_.Op("group_norm", {x, Wanted({shape[1]}), Wanted({shape[1]})},
                   {{"groups", Option('n', 32)}});
    }
    if (name == "ln")
      return m_.Op("layer_norm", {x, Wanted({shape.back()}), Wanted({shape.back()})});
    if (name == "rms") return m_.Op("rms_norm", {x, Wanted({shape.back()})});
    if (name == "lrn") return m_.Op("local_response_norm", {x}, {{"size", int64_t{5}}});
    if (name == "residual") return m_.ops.Add(x, Wanted(shape));
    if (name == "scale") {
      Shape scale = ChannelShape(shape);
      scale[0] = shape[0];
      return m_.ops.Mul(x, Wanted(scale));
    }
    if (name == "softmax") return m_.Op("softmax", {x}, {{"axis", int64_t{-1}}});
    if (name == "glu") return m_.Op("glu", {x}, {{"axis", int64_t{1}}});
    return m_.Op(name, {x});
  }

  static Shape ChannelShape(const Shape& shape) {
    Shape channel(shape.size(), 1);
    channel[1] = shape[1];
    return channel;
  }

  graph::Graph BuildAdam() {
    const NodePointer count = m_.ops.Cast(m_.Input({}, DType::kInt32), DType::kFloat32);
    const NodePointer parameter = m_.Input(layer_.shape);
    m_.Adam(parameter, m_.Input(layer_.shape), count);
    return m_.Finish();
  }

  const Layer& layer_;
  const int64_t batch_;
  const DType dtype_;
  golden::ModelBuilder m_;
  std::vector<NodePointer> wanted_;
};

}  // namespace

graph::Graph MakeGraph(const Layer& layer, int64_t batch, DType dtype) {
  return LayerBuilder(layer, batch, dtype).Build();
}

}  // namespace kiln::full_size
