#include "tests/numerics/random_graph.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "compiler/ops/build.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/infer.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;
using ops::Attributes;

constexpr int64_t kMostElements = 600;
constexpr double kLargest = 300;

struct Value {
  const Node* node = nullptr;
  double bound = 0;    // |elements| of floats stay below
  bool exact = false;  // small multiples of 1/4: float32 holds them and their sums exactly
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), builder_(MakeContext()) {
    for (int i = 0; i < 2; ++i) Keep(NewInput(DType::kFloat32, RandomShape()));
    Keep(NewInput(DType::kInt32, RandomShape()));
  }

  // Adds one value.
  void Step() {
    static constexpr Value (Generator::*kKinds[])() = {
        &Generator::FloatUnary, &Generator::FloatBinary, &Generator::FloatBinary,
        &Generator::Composite,  &Generator::Integer,     &Generator::Choice,
        &Generator::Reduction,  &Generator::Reduction,   &Generator::Movement,
        &Generator::Movement,   &Generator::Movement,    &Generator::Sliding,
        &Generator::Gathering,  &Generator::Contraction, &Generator::Conversion,
    };
    for (;;) {
      const Value value = (this->*kKinds[Draw(std::size(kKinds))])();
      if (value.node == nullptr || ir::NumElements(value.node->shape()) > kMostElements) continue;
      if (ir::IsFloat(value.node->dtype()) && value.bound > kLargest) continue;
      Keep(value);
      return;
    }
  }

  RandomGraph Finish() {
    graph_.outputs.push_back(values_.back().node);
    for (int i = 0; i < 2; ++i) graph_.outputs.push_back(values_[Draw(values_.size())].node);
    return Result();
  }

  RandomGraph FinishWithGradients() {
    const auto last = std::find_if(values_.rbegin(), values_.rend(), [](const Value& value) {
      return ir::IsFloat(value.node->dtype());
    });
    std::vector<int64_t> axes(last->node->shape().size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    const Node* y = builder_.Sum(last->node, axes);
    graph_.outputs.push_back(y);
    for (const Node* input : inputs_) {
      if (!ir::IsFloat(input->dtype())) continue;
      graph_.outputs.push_back(
          builder_.context().Get(Op::kGradient, input->dtype(), input->shape(), {y, input}));
    }
    return Result();
  }

 private:
  ir::Context& MakeContext() {
    graph_.context = std::make_shared<ir::Context>();
    return *graph_.context;
  }

  RandomGraph Result() {
    RandomGraph result{graph_, data_, {}};
    for (const Value& value : values_) result.values.push_back(value.node);
    return result;
  }

  // In [0, count): the library's distributions differ between implementations.
  size_t Draw(size_t count) { return random_() % count; }
  bool Coin() { return Draw(2) == 0; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Draw(static_cast<size_t>(high - low + 1)));
  }

  Shape RandomShape() {
    Shape shape(Draw(4));
    for (int64_t& size : shape) size = Between(1, 7);
    return shape;
  }

  void Keep(Value value) { values_.push_back(value); }

  Value NewInput(DType dtype, const Shape& shape) {
    ops::HostTensor data = ops::HostTensor::Zeros(dtype, shape);
    for (int64_t i = 0; i < data.size(); ++i) {
      if (ir::IsFloat(dtype)) {
        data.SetFloat(i, static_cast<double>(Between(-8, 8)) / 4);
      } else {
        data.SetInt(i, Between(-9, 9));
      }
    }
    const auto index = static_cast<int64_t>(graph_.inputs.size());
    graph_.inputs.push_back({dtype, shape});
    data_.push_back(std::move(data));
    inputs_.push_back(builder_.Input(index, dtype, shape));
    return {inputs_.back(), 2, true};
  }

  template <typename Predicate>
  Value Pick(Predicate fits) {
    std::vector<Value> candidates;
    for (const Value& value : values_) {
      if (fits(value)) candidates.push_back(value);
    }
    return candidates.empty() ? Value{} : candidates[Draw(candidates.size())];
  }
  Value PickFloat() {
    return Pick([](const Value& value) { return value.node->dtype() == DType::kFloat32; });
  }
  Value PickInt() {
    return Pick([](const Value& value) { return value.node->dtype() == DType::kInt32; });
  }
  Value PickAny() {
    return Pick([](const Value&) { return true; });
  }

  // A value of x's dtype that broadcasts with it: one that is there, or a new input with some of
  // x's dimensions.
  Value Partner(const Value& x) {
    const Value found = Pick([&](const Value& value) {
      return value.node->dtype() == x.node->dtype() &&
             ops::BroadcastShapes({value.node->shape(), x.node->shape()}).ok();
    });
    if (found.node != x.node || x.node->dtype() == DType::kBool) return found;
    Shape shape = x.node->shape();
    for (int64_t& size : shape) {
      if (Coin()) size = 1;
    }
    return NewInput(x.node->dtype(), shape);
  }

  // x * x + 1/2: positive, and away from 0.
  Value Positive(const Value& x) {
    return {builder_.Add(builder_.Mul(x.node, x.node), 0.5), x.bound * x.bound + 0.5, false};
  }

  Value Apply(const char* name, std::vector<const Node*> operands, Attributes attributes,
              double bound) {
    const auto made =
        ops::Build(builder_, *ops::FindOp(name), operands, attributes, DType::kInvalid);
    return made.ok() ? Value{*made, bound, false} : Value{};
  }

  Value FloatUnary() {
    const Value x = PickFloat();
    if (x.node == nullptr) return {};
    switch (Draw(8)) {
      case 0:
        return {builder_.Neg(x.node), x.bound, x.exact};
      case 1:
        return {builder_.Sin(x.node), 1, false};
      case 2:
        return x.bound > 7 ? Value{} : Value{builder_.Exp2(x.node), std::exp2(x.bound), false};
      case 3:
        return {builder_.Sqrt(Positive(x).node), x.bound + 1, false};
      case 4:
        return {builder_.Log2(Positive(x).node), std::log2(Positive(x).bound) + 1, false};
      case 5:
        return {builder_.Reciprocal(Positive(x).node), 2, false};
      case 6:
        return x.exact ? Value{builder_.Trunc(x.node), x.bound, true} : Value{};
      default:
        return {builder_.Contiguous(x.node), x.bound, x.exact};
    }
  }

  Value FloatBinary() {
    const Value x = PickFloat();
    if (x.node == nullptr) return {};
    const Value y = Partner(x);
    const bool exact = x.exact && y.exact;
    switch (Draw(7)) {
      case 0:
        return {builder_.Add(x.node, y.node), x.bound + y.bound, exact};
      case 1:
        return {builder_.Sub(x.node, y.node), x.bound + y.bound, exact};
      case 2:
        return {builder_.Mul(x.node, y.node), x.bound * y.bound, false};
      case 3:
        return {builder_.Binary(Op::kMax, x.node, y.node), std::max(x.bound, y.bound), exact};
      case 4:
        return {builder_.Binary(Op::kMin, x.node, y.node), std::max(x.bound, y.bound), exact};
      case 5:
        return {builder_.Div(x.node, Positive(y).node), 2 * x.bound, false};
      default:
        if (y.bound > 3 || x.bound > 3) return {};
        return {builder_.Binary(Op::kPow, Positive(x).node, y.node),
                std::pow(std::max(2.0, Positive(x).bound), y.bound), false};
    }
  }

  Value Composite() {
    const Value x = PickFloat();
    if (x.node == nullptr || x.node->shape().empty()) return {};
    switch (Draw(5)) {
      case 0:
        return Apply("softmax", {x.node}, {{"axis", Between(0, Rank(x) - 1)}}, 1);
      case 1:
        return Apply("layer_norm", {x.node}, {{"epsilon", 0.5}}, 3);
      case 2:
        return Apply("gelu", {x.node}, {}, x.bound);
      case 3:
        return Apply("tanh", {x.node}, {}, 1);
      default:
        return Apply("var", {x.node}, {{"axes", std::vector<int64_t>{-1}}, {"correction", 0.0}},
                     4 * x.bound * x.bound);
    }
  }

  Value Integer() {
    static constexpr Op kOps[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kIDiv, Op::kMod, Op::kMax,
                                  Op::kMin, Op::kAnd, Op::kOr,  Op::kXor,  Op::kShl, Op::kShr};
    const Value x = PickInt();
    const Value y = Partner(x);
    const Op op = kOps[Draw(std::size(kOps))];
    if (op != Op::kShl && op != Op::kShr) return {builder_.Binary(op, x.node, y.node)};
    const Node* amount = builder_.Binary(Op::kAnd, y.node, builder_.ConstInt(DType::kInt32, 7));
    return {builder_.Binary(op, x.node, amount)};
  }

  // A comparison, or a choice by one.
  Value Choice() {
    static constexpr Op kOps[] = {Op::kCmpLt, Op::kCmpEq, Op::kCmpNe};
    const Value condition =
        Pick([](const Value& value) { return value.node->dtype() == DType::kBool; });
    if (condition.node == nullptr || Coin()) {
      const Value x = Pick([](const Value& value) {
        return value.node->dtype() == DType::kInt32 || (value.exact && value.node->shape().size());
      });
      const Value y = Partner(x);
      const bool comparable = x.node->dtype() != DType::kFloat32 || y.exact;
      if (!comparable) return {};
      return {builder_.Binary(kOps[Draw(std::size(kOps))], x.node, y.node)};
    }
    const Value x = PickFloat();
    const Value y = Partner(x);
    const auto shape =
        ops::BroadcastShapes({condition.node->shape(), x.node->shape(), y.node->shape()});
    if (!shape.ok()) return {};
    return {builder_.Where(condition.node, x.node, y.node), std::max(x.bound, y.bound),
            x.exact && y.exact};
  }

  Value Reduction() {
    const Value x = PickAny();
    if (x.node->shape().empty()) return {};
    const bool is_bool = x.node->dtype() == DType::kBool;
    std::vector<int64_t> axes;
    double count = 1;
    for (int64_t axis = 0; axis < Rank(x); ++axis) {
      if (!Coin()) continue;
      axes.push_back(axis);
      count *= static_cast<double>(x.node->shape()[axis]);
    }
    const bool keepdims = Coin();
    switch (is_bool ? 2 : Draw(4)) {
      case 0:
      case 1:
        return {builder_.Sum(x.node, axes, keepdims), x.bound * count, x.exact};
      case 2:
        return {builder_.Max(x.node, axes, keepdims), x.bound, x.exact};
      default:
        return {builder_.Prod(x.node, axes, keepdims), std::pow(std::max(1.0, x.bound), count)};
    }
  }

  Value Movement() {
    const Value x = PickAny();
    const Shape& shape = x.node->shape();
    std::vector<int64_t> list;
    switch (Draw(6)) {
      case 0: {
        Shape flat = {ir::NumElements(shape)};
        for (const int64_t factor : {2, 3, 5}) {
          if (flat[0] % factor == 0 && Coin()) flat.insert(flat.end(), factor), flat[0] /= factor;
        }
        return {builder_.Reshape(x.node, flat), x.bound, x.exact};
      }
      case 1:
        for (int64_t i = 0; i < Rank(x); ++i) list.push_back(i);
        for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[Draw(i)]);
        return {builder_.Permute(x.node, list), x.bound, x.exact};
      case 2: {
        Shape wide = shape;
        wide.insert(wide.begin(), Between(1, 4));
        return {builder_.BroadcastTo(x.node, wide), x.bound, x.exact};
      }
      case 3:
        for (int64_t i = 0; i < 2 * Rank(x); ++i) list.push_back(Between(0, 2));
        return {builder_.Pad(x.node, list), x.bound, x.exact};
      case 4:
        for (const int64_t size : shape) {
          const int64_t begin = Between(0, size - 1);
          list.insert(list.end(), {begin, Between(begin + 1, size)});
        }
        return {builder_.Shrink(x.node, list), x.bound, x.exact};
      default:
        for (int64_t i = 0; i < Rank(x); ++i) {
          if (Coin()) list.push_back(i);
        }
        return {builder_.Flip(x.node, list), x.bound, x.exact};
    }
  }

  Value Sliding() {
    const Value x = PickAny();
    if (x.node->shape().empty()) return {};
    const int64_t axis = Between(0, Rank(x) - 1);
    const int64_t length = x.node->shape()[axis];
    const int64_t size = Between(1, std::min<int64_t>(3, length));
    const int64_t dilation =
        size == 1 ? 1 : Between(1, std::min<int64_t>(2, (length - 1) / (size - 1)));
    const int64_t stride = Between(1, 3);
    const Node* windows = builder_.Window(x.node, axis, size, stride, dilation);
    if (Coin()) return {windows, x.bound, x.exact};
    return {builder_.Unwindow(windows, axis, length, stride, dilation), x.bound, x.exact};
  }

  Value Gathering() {
    const Value x = PickFloat();
    if (x.node == nullptr || x.node->shape().empty()) return {};
    const int64_t axis = Between(0, Rank(x) - 1);
    const Node* raw =
        Pick([](const Value& value) {
          return value.node->dtype() == DType::kInt32 && value.node->shape().size() <= 1;
        }).node;
    if (raw == nullptr) raw = NewInput(DType::kInt32, {Between(1, 5)}).node;
    // Some indices are out of range on either side.
    if (Coin()) return GatheringElements(x, axis);
    const Node* index = AroundRange(raw, x.node->shape()[axis]);
    const Node* gathered = builder_.Gather(x.node, index, axis);
    if (Coin()) return {gathered, x.bound, x.exact};
    const int64_t count = ir::NumElements(index->shape());
    return Scattered(x, count, [&](ir::ScatterMode mode) {
      return builder_.Scatter(x.node, index, gathered, axis, mode);
    });
  }

  // Each line along the axis has indices of its own.
  Value GatheringElements(const Value& x, int64_t axis) {
    Shape shape = x.node->shape();
    shape[axis] = Between(1, 4);
    const Node* index = AroundRange(NewInput(DType::kInt32, shape).node, x.node->shape()[axis]);
    const Node* gathered = builder_.GatherElements(x.node, index, axis);
    if (Coin()) return {gathered, x.bound, x.exact};
    return Scattered(x, shape[axis], [&](ir::ScatterMode mode) {
      return builder_.ScatterElements(x.node, index, gathered, axis, mode);
    });
  }

  // Some are out of range on either side.
  const Node* AroundRange(const Node* raw, int64_t size) {
    const Node* modulus = builder_.ConstInt(DType::kInt32, size + 2);
    return builder_.Add(builder_.Binary(Op::kMod, raw, modulus), -1.0);
  }

  // Values of x scattered into x, up to `count` to one place.
  template <typename Scatter>
  Value Scattered(const Value& x, int64_t count, Scatter scatter) {
    using Mode = ir::ScatterMode;
    constexpr Mode kModes[] = {Mode::kSet, Mode::kAdd, Mode::kMax, Mode::kMin};
    const Mode mode = kModes[Between(0, 3)];
    const double most = mode == Mode::kAdd ? static_cast<double>(1 + count) : 1;
    return {scatter(mode), x.bound * most, x.exact};
  }

  Value Contraction() {
    const Value x = PickFloat();
    if (x.node == nullptr || x.node->shape().size() < 2 || x.bound > 8) return {};
    const int64_t inner = x.node->shape().back();
    const Value y = NewInput(DType::kFloat32, {inner, Between(1, 9)});
    return Apply("matmul", {x.node, y.node}, {}, x.bound * 2 * static_cast<double>(inner));
  }

  Value Conversion() {
    const Value x = PickAny();
    const Node* modulus = builder_.ConstInt(DType::kInt32, 7);
    switch (x.node->dtype()) {
      case DType::kBool:
        return Coin() ? Value{builder_.Cast(x.node, DType::kFloat32), 1, true}
                      : Value{builder_.Cast(x.node, DType::kInt32)};
      case DType::kInt32:
        return {builder_.Cast(builder_.Binary(Op::kMod, x.node, modulus), DType::kFloat32), 7,
                true};
      default:
        return x.exact ? Value{builder_.Cast(x.node, DType::kInt32)} : Value{};
    }
  }

  static int64_t Rank(const Value& x) { return static_cast<int64_t>(x.node->shape().size()); }

  std::mt19937_64 random_;
  graph::Graph graph_;
  ops::Builder builder_;
  std::vector<ops::HostTensor> data_;
  std::vector<const Node*> inputs_;
  std::vector<Value> values_;
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed, int steps) {
  Generator generator(seed);
  for (int i = 0; i < steps; ++i) generator.Step();
  return generator.Finish();
}

RandomGraph MakeRandomGradientGraph(uint64_t seed, int steps) {
  Generator generator(seed);
  for (int i = 0; i < steps; ++i) generator.Step();
  return generator.FinishWithGradients();
}

}  // namespace kiln::numerics
