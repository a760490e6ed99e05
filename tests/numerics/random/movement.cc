// Steps of random graphs that move elements: views, windows, gathers and scatters.
#include <algorithm>

#include "tests/numerics/random/generator.h"

namespace kiln::numerics {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

// Often a view of a view, which simplification joins.
Value Generator::Movement() {
  Value x = View(PickAny());
  while (Coin() && ir::NumElements(x.node->shape()) < 600) x = View(x);
  return x;
}

Value Generator::View(const Value& x) {
  const Shape& shape = x.node->shape();
  std::vector<int64_t> list;
  switch (Draw(6)) {
    case 0: {
      Shape flat = {ir::NumElements(shape)};
      for (const int64_t factor : {2, 3, 5}) {
        if (flat[0] % factor == 0 && Coin()) flat.insert(flat.end(), factor), flat[0] /= factor;
      }
      return {builder_.Reshape(x.node, flat), x.exact};
    }
    case 1:
      for (int64_t i = 0; i < Rank(x); ++i) list.push_back(i);
      for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[Draw(i)]);
      return {builder_.Permute(x.node, list), x.exact};
    case 2: {
      Shape wide = shape;
      wide.insert(wide.begin(), Between(1, 4));
      return {builder_.BroadcastTo(x.node, wide), x.exact};
    }
    case 3:
      for (int64_t i = 0; i < 2 * Rank(x); ++i) list.push_back(Between(0, 2));
      return {builder_.Pad(x.node, list), x.exact};
    case 4:
      for (const int64_t size : shape) {
        const int64_t begin = Between(0, std::max<int64_t>(0, size - 1));
        list.insert(list.end(), {begin, Between(std::min(begin + 1, size), size)});
      }
      return {builder_.Shrink(x.node, list), x.exact};
    default:
      for (int64_t i = 0; i < Rank(x); ++i) {
        if (Coin()) list.push_back(i);
      }
      return {builder_.Flip(x.node, list), x.exact};
  }
}

Value Generator::Sliding() {
  const Value x = PickAny();
  if (x.node->shape().empty()) return {};
  const int64_t axis = Between(0, Rank(x) - 1);
  const int64_t length = x.node->shape()[axis];
  if (length == 0) return {};
  const int64_t size = Between(1, std::min<int64_t>(3, length));
  const int64_t dilation =
      size == 1 ? 1 : Between(1, std::min<int64_t>(2, (length - 1) / (size - 1)));
  const int64_t stride = Between(1, 3);
  const Node* windows = builder_.Window(x.node, axis, size, stride, dilation);
  if (Coin()) return {windows, x.exact};
  return {builder_.Unwindow(windows, axis, length, stride, dilation), x.exact};
}

// Some indices are out of range at either end.
const Node* Generator::AroundRange(const Node* raw, int64_t size) {
  const Node* modulus = builder_.ConstInt(DType::kInt32, size + 2);
  return builder_.Add(builder_.Binary(Op::kMod, raw, modulus), -1.0);
}

ir::ScatterMode Generator::RandomMode() {
  using Mode = ir::ScatterMode;
  constexpr Mode kModes[] = {Mode::kSet, Mode::kAdd, Mode::kMul, Mode::kMax, Mode::kMin};
  return kModes[Between(0, 4)];
}

Value Generator::Gathering() {
  const Value x = PickFloat();
  if (x.node == nullptr || x.node->shape().empty()) return {};
  const int64_t axis = Between(0, Rank(x) - 1);
  if (Coin()) return GatheringElements(x, axis);
  const Node* raw =
      Pick([](const Value& value) {
        return value.node->dtype() == DType::kInt32 && value.node->shape().size() <= 1;
      }).node;
  if (raw == nullptr) raw = NewInput(DType::kInt32, {Between(1, 5)}).node;
  const Node* index = AroundRange(raw, x.node->shape()[axis]);
  const Node* gathered = builder_.Gather(x.node, index, axis);
  if (Coin()) return {gathered, x.exact};
  return {builder_.Scatter(x.node, index, gathered, axis, RandomMode()), x.exact};
}

// Each line along the axis has its own indices.
Value Generator::GatheringElements(const Value& x, int64_t axis) {
  Shape shape = x.node->shape();
  shape[axis] = Between(1, 4);
  const Node* index = AroundRange(NewInput(DType::kInt32, shape).node, x.node->shape()[axis]);
  const Node* gathered = builder_.GatherElements(x.node, index, axis);
  if (Coin()) return {gathered, x.exact};
  return {builder_.ScatterElements(x.node, index, gathered, axis, RandomMode()), x.exact};
}

}  // namespace kiln::numerics
