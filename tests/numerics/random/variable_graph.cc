#include "tests/numerics/random/variable_graph.h"

#include <algorithm>
#include <utility>

#include "compiler/ops/testing/build_op.h"

namespace kiln::numerics {

using ir::DType;
using ir::Node;

const Node* Maker::Input(const ir::Shape& shape, DType wanted) {
  const DType chosen = wanted == DType::kInvalid ? dtype : wanted;
  graph.inputs.push_back({chosen, shape});
  return b.Input(static_cast<int64_t>(graph.inputs.size()) - 1, chosen, shape);
}

const Node* Maker::Make(std::string_view op, std::vector<const Node*> operands,
                        const ops::Attributes& attributes, DType declared) {
  if (form_sizes != nullptr) form_sizes->BeginNode(made++);
  return ops::BuildOp(b, *ops::FindOp(op), operands, attributes, declared).value();
}

namespace {

class RandomMaker {
 public:
  RandomMaker(Maker& maker, uint64_t seed, int64_t n) : m_(maker), state_(seed * 2 + 1), n_(n) {}

  void Run(int steps) {
    Add(m_.Input({3, n_}), {{0, 3}, {1, 0}});
    Add(m_.Input({n_, 2}), {{1, 0}, {0, 2}});
    Add(m_.Input({2, n_ + 1, 2}), {{0, 2}, {1, 1}, {0, 2}});
    for (int i = 0; i < steps; ++i) Step();
    const Node* last = values_.back().node;
    const Node* loss = m_.Make("sum", {m_.Make("mul", {last, last})});
    m_.graph.outputs = {last, values_[values_.size() / 2].node, loss};
    for (int i = 0; i < 3; ++i) {
      m_.graph.outputs.push_back(m_.Make("gradient", {loss, values_[i].node}));
    }
  }

 private:
  struct Size {
    int64_t a, b;
    bool operator==(const Size&) const = default;
  };
  struct Value {
    const Node* node;
    std::vector<Size> dims;
  };
  void Add(const Node* node, std::vector<Size> dims) { values_.push_back({node, std::move(dims)}); }
  int64_t Pick(int64_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % count);
  }
  int64_t At(Size size) const { return size.a * n_ + size.b; }

  void Step() {
    const Value x = values_[values_.size() - 1 - Pick(std::min<int64_t>(3, values_.size()))];
    const int64_t rank = static_cast<int64_t>(x.dims.size());
    const int64_t axis = Pick(rank);
    const Size size = x.dims[axis];
    std::vector<Size> dims = x.dims;
    std::vector<int64_t> pairs(2 * rank, 0);
    switch (Pick(16)) {
      case 0:
        return Add(m_.Make("sin", {x.node}), dims);
      case 1:
        return Add(m_.Make("softmax", {x.node}, {{"axis", axis}}), dims);
      case 2:
        return Add(
            m_.Make("sub", {x.node, m_.Make("mean", {x.node},
                                            {{"axes", m_.List({axis})}, {"keepdims", true}})}),
            dims);
      case 3:
        return Add(m_.Make("flip", {x.node}, {{"axes", m_.List({axis})}}), dims);
      case 4: {  // pad, by a number of elements that may vary
        if (size.a + size.b > 6) return;
        const Size before = Pick(2) == 0 ? Size{0, Pick(3)} : Size{1, -1};
        pairs[2 * axis] = At(before);
        pairs[2 * axis + 1] = Pick(2);
        dims[axis] = {size.a + before.a, size.b + before.b + pairs[2 * axis + 1]};
        return Add(m_.Make("pad", {x.node}, {{"padding", pairs}}), dims);
      }
      case 5: {  // shrink to elements that exist for every n
        if (size.a + size.b < 2) return;
        for (int64_t i = 0; i < rank; ++i) pairs[2 * i + 1] = At(dims[i]);
        const int64_t begin = Pick(2);
        pairs[2 * axis] = begin;
        pairs[2 * axis + 1] -= 1 - begin;
        dims[axis] = {size.a, size.b - 1};
        return Add(m_.Make("shrink", {x.node}, {{"bounds", pairs}}), dims);
      }
      case 6:
        if (size.a + size.b > 6) return;
        dims[axis] = {2 * size.a, 2 * size.b};
        return Add(m_.Make("concat", {x.node, m_.Make("exp", {m_.Make("sin", {x.node})})},
                           {{"axis", axis}}),
                   dims);
      case 7: {
        std::vector<int64_t> axes(rank);
        for (int64_t i = 0; i < rank; ++i) axes[i] = (i + axis) % rank;
        for (int64_t i = 0; i < rank; ++i) dims[i] = x.dims[axes[i]];
        return Add(m_.Make("permute", {x.node}, {{"axes", axes}}), dims);
      }
      case 8: {
        if (rank < 2) return;
        const Node* turned = m_.b.Transpose(x.node, -1, -2);
        dims.back() = dims[rank - 2];
        return Add(m_.Make("tanh", {m_.Make("matmul", {x.node, turned})}), dims);
      }
      case 9: {  // two dimensions merged, then split in another order
        if (rank < 2 || (x.dims[0].a != 0 && x.dims[1].a != 0)) return;
        const Size joined = {x.dims[0].a * x.dims[1].b + x.dims[0].b * x.dims[1].a,
                             x.dims[0].b * x.dims[1].b};
        std::vector<Size> flat = {joined};
        flat.insert(flat.end(), x.dims.begin() + 2, x.dims.end());
        ir::Shape shape;
        for (const Size& one : flat) shape.push_back(At(one));
        const Node* reshaped = m_.b.Reshape(m_.Make("neg", {x.node}), shape);
        if (Pick(2) == 0) return Add(reshaped, flat);
        std::swap(dims[0], dims[1]);
        shape.insert(shape.begin() + 1, At(dims[1]));
        shape[0] = At(dims[0]);
        return Add(m_.b.Reshape(m_.Make("cos", {reshaped}), shape), dims);
      }
      case 10: {
        dims.erase(dims.begin() + axis);
        if (dims.empty()) return;
        const char* const op = Pick(2) == 0 ? "max" : "logsumexp";
        return Add(m_.Make(op, {x.node}, {{"axes", m_.List({axis})}}), dims);
      }
      case 11:
        return Add(m_.Make("sort", {x.node}, {{"axis", axis}, {"descending", Pick(2) == 0}}), dims);
      case 12:
        return Add(m_.Make("cumulative_sum", {x.node}, {{"axis", axis}}), dims);
      case 13:
        dims[axis] = {0, 1};
        return Add(m_.Make("topk", {x.node}, {{"axis", axis}, {"k", int64_t{1}}}), dims);
      case 14: {  // every second element
        if (rank < 2 || size.a + size.b < 2) return;
        const Node* windows = m_.b.Window(x.node, axis, 2, 2, 1);
        const Node* halves = m_.Make("sum", {windows}, {{"axes", m_.List({-1})}});
        dims.erase(dims.begin() + axis);
        return Add(m_.Make("max", {halves}, {{"axes", m_.List({axis})}}), dims);
      }
      default: {  // with indices that run backwards and out of range
        const Node* places =
            m_.Make("sub", {m_.b.ConstInt(DType::kInt64, 3),
                            m_.Make("iota", {}, {{"shape", m_.List({n_})}}, DType::kInt64)});
        dims[axis] = {1, 0};
        return Add(m_.Make("gather", {x.node, places}, {{"axis", axis}}), dims);
      }
    }
  }

  Maker& m_;
  uint64_t state_;
  const int64_t n_;
  std::vector<Value> values_;
};

}  // namespace

void MakeVariableGraph(Maker& maker, uint64_t seed, int64_t n, int steps) {
  RandomMaker(maker, seed, n).Run(steps);
}

}  // namespace kiln::numerics
