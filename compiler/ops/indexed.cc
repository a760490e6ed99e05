// Rows of the ops whose indices are data.
#include <algorithm>

#include "compiler/ops/evaluations.h"
#include "compiler/ops/gradients.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;
using Result = absl::StatusOr<HostTensor>;

// A tensor seen along one axis: outer × length × inner.
struct Planes {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

Planes PlanesOf(const ir::Shape& shape, int64_t axis) {
  Planes planes;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    (d < axis ? planes.outer : d == axis ? planes.length : planes.inner) *= shape[d];
  }
  return planes;
}

// Calls `visit` with the element of x, and the element of the gathered tensor, for every index that
// is in range.
template <typename VisitFn>
void ForEachIndexed(const HostTensor& x, const HostTensor& index, int64_t axis, VisitFn visit) {
  const Planes planes = PlanesOf(x.shape, axis);
  for (int64_t outer = 0; outer < planes.outer; ++outer) {
    for (int64_t i = 0; i < index.size(); ++i) {
      const int64_t row = index.Int(i);
      if (row < 0 || row >= planes.length) continue;
      for (int64_t inner = 0; inner < planes.inner; ++inner) {
        visit((outer * planes.length + row) * planes.inner + inner,
              (outer * index.size() + i) * planes.inner + inner);
      }
    }
  }
}

}  // namespace

Result EvaluateGather(const Node* node, HostOperands operands) {
  const HostTensor& x = *operands[0];
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int size = ir::SizeOf(node->dtype());
  ForEachIndexed(x, *operands[1], node->attr<ir::IntAttr>().value, [&](int64_t from, int64_t to) {
    std::copy_n(x.bytes.begin() + from * size, size, result.bytes.begin() + to * size);
  });
  return result;
}

Result EvaluateScatterAdd(const Node* node, HostOperands operands) {
  const HostTensor& values = *operands[2];
  const bool is_float = ir::IsFloat(node->dtype());
  HostTensor result = *operands[0];
  std::vector<double> sums;
  for (int64_t i = 0; is_float && i < result.size(); ++i) sums.push_back(result.Float(i));
  ForEachIndexed(
      *operands[0], *operands[1], node->attr<ir::IntAttr>().value, [&](int64_t to, int64_t from) {
        if (is_float) {
          sums[to] += values.Float(from);
        } else {
          const auto sum =
              static_cast<uint64_t>(result.Int(to)) + static_cast<uint64_t>(values.Int(from));
          result.SetInt(to, static_cast<int64_t>(sum));
        }
      });
  for (size_t i = 0; i < sums.size(); ++i) result.SetFloat(static_cast<int64_t>(i), sums[i]);
  return result;
}

std::vector<OpDef> IndexedOps() {
  return {
      {.name = "gather",
       .kind = Kind::kIndexed,
       .op = Op::kGather,
       .operands = {"x", "index"},
       .attributes = {OptionalInt("axis", 0)},
       .shape_rule = ShapeRule::kGather,
       .dtype_rule = DTypeRule::kSame,
       .special_operand = 1,
       .gradient = GatherGradient,
       .evaluate = EvaluateGather,
       .doc = "x's entries at index along axis, as NumPy's take; an index out of range (a negative "
              "one too) reads zero. With axis 0 it is an embedding"},
      {.name = "scatter_add",
       .kind = Kind::kIndexed,
       .op = Op::kScatterAdd,
       .operands = {"x", "index", "values"},
       .attributes = {OptionalInt("axis", 0)},
       .shape_rule = ShapeRule::kScatter,
       .dtype_rule = DTypeRule::kSame,
       .operand_class = DTypeClass::kNumeric,
       .special_operand = 1,
       .gradient = ScatterAddGradient,
       .evaluate = EvaluateScatterAdd,
       .doc = "x plus values added at index along axis; values have the shape gather gives; an "
              "index out of range adds nothing"},
  };
}

}  // namespace kiln::ops
