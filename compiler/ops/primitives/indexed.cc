// Rows of the ops with data-dependent indices.
#include <algorithm>
#include <cmath>

#include "compiler/ops/primitives/evaluations.h"
#include "compiler/ops/primitives/gradients.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/scatter_mode.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;
using ir::ScatterMode;
using Result = absl::StatusOr<HostTensor>;

// Calls `visit` with the element of x and the element of the gathered tensor, for every position of
// the gathered tensor, row-major, whose index is in range.
template <typename VisitFn>
void ForEachIndexed(const ir::Shape& x, const ir::Shape& gathered, const HostTensor& index,
                    int64_t axis, VisitFn visit) {
  const std::vector<int64_t> x_strides = StridesOf(x);
  const std::vector<int64_t> index_strides = StridesOf(index.shape);
  std::vector<int64_t> place(gathered.size(), 0);
  for (int64_t to = 0, count = ir::NumElements(gathered); to < count; ++to) {
    int64_t at_index = 0;
    int64_t from = 0;
    for (size_t d = 0; d < place.size(); ++d) {
      // An index of size 1 along a dimension is broadcast.
      if (index.shape[d] != 1) at_index += place[d] * index_strides[d];
      if (static_cast<int64_t>(d) != axis) from += place[d] * x_strides[d];
    }
    const int64_t row = index.Int(at_index);
    if (row >= 0 && row < x[axis]) visit(from + row * x_strides[axis], to);
    // Moves to the next position: a dimension at its end carries into the one before it.
    for (size_t d = place.size(); d-- > 0 && ++place[d] == gathered[d];) place[d] = 0;
  }
}

double CombineFloats(ScatterMode mode, double a, double b) {
  if (mode == ScatterMode::kSet) return b;
  if (mode == ScatterMode::kAdd) return a + b;
  if (mode == ScatterMode::kMul) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return mode == ScatterMode::kMax ? std::max(a, b) : std::min(a, b);
}

int64_t CombineIntegers(ScatterMode mode, ir::DType dtype, int64_t a, int64_t b) {
  const auto bits_a = static_cast<uint64_t>(a);
  const auto bits_b = static_cast<uint64_t>(b);
  const bool less = dtype == ir::DType::kUInt64 ? bits_a < bits_b : a < b;
  switch (mode) {
    case ScatterMode::kSet:
      return b;
    case ScatterMode::kAdd:
      return static_cast<int64_t>(bits_a + bits_b);
    case ScatterMode::kMul:
      return static_cast<int64_t>(bits_a * bits_b);
    case ScatterMode::kMax:
      return less ? b : a;
    case ScatterMode::kMin:
      return less ? a : b;
  }
  return b;
}

constexpr Rule kGatherElementsShape = {"gather_elements", "x, index", R"rule(
  check len(index) == len(x):
    "an index of shape {index} for a tensor of shape {x}; both must have the same number of "
    "dimensions"
  axis = normalize_axis(attributes["axis"], len(x))
  places = x[:axis] + index[axis:axis + 1] + x[axis + 1:]
  check broadcasts_to(index, places): "an index of shape {index} does not broadcast to {places}"
  -> places
)rule"};

constexpr Rule kScatterElementsShape = {"scatter_elements", "x, index, values", R"rule(
  check len(index) == len(x):
    "an index of shape {index} for a tensor of shape {x}; both must have the same number of "
    "dimensions"
  axis = normalize_axis(attributes["axis"], len(x))
  places = x[:axis] + index[axis:axis + 1] + x[axis + 1:]
  check broadcasts_to(index, places): "an index of shape {index} does not broadcast to {places}"
  check values == places:
    "values of shape {values} to scatter into {x} at an index of shape {index}; they must have "
    "shape {places}"
  -> x
)rule"};

}  // namespace

Result EvaluateGatherElements(const Node* node, HostOperands operands) {
  const HostTensor& x = *operands[0];
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int size = ir::SizeOf(node->dtype());
  ForEachIndexed(x.shape, result.shape, *operands[1], node->attr<ir::IntAttr>().value,
                 [&](int64_t from, int64_t to) {
                   std::copy_n(x.bytes.begin() + from * size, size,
                               result.bytes.begin() + to * size);
                 });
  return result;
}

// Sums and products of floats are rounded once, at the end.
Result EvaluateScatterElements(const Node* node, HostOperands operands) {
  const HostTensor& values = *operands[2];
  const auto [axis, mode] = node->attr<ir::ScatterAttr>();
  const bool is_float = ir::IsFloat(node->dtype());
  HostTensor result = *operands[0];
  std::vector<double> floats;
  for (int64_t i = 0; is_float && i < result.size(); ++i) floats.push_back(result.Float(i));
  ForEachIndexed(result.shape, values.shape, *operands[1], axis, [&](int64_t to, int64_t from) {
    if (is_float) {
      floats[to] = CombineFloats(mode, floats[to], values.Float(from));
    } else {
      result.SetInt(to, CombineIntegers(mode, node->dtype(), result.Int(to), values.Int(from)));
    }
  });
  for (size_t i = 0; i < floats.size(); ++i) result.SetFloat(static_cast<int64_t>(i), floats[i]);
  return result;
}

std::vector<OpDef> IndexedOps() {
  return {
      {.name = "gather_elements",
       .kind = Kind::kIndexed,
       .op = Op::kGatherElements,
       .operands = {"x", "index"},
       .attributes = {OptionalInt("axis", 0)},
       .shape_rule = kGatherElementsShape,
       .dtype_rule = DTypeRule::kSame,
       .special_operand = 1,
       .gradient = GatherElementsGradient,
       .evaluate = EvaluateGatherElements,
       .doc = "x[…, index[…, i, …], …], as ONNX's GatherElements; away from the axis index has x's "
              "sizes or 1. An index out of range (a negative one too) reads zero"},
      {.name = "scatter_elements",
       .kind = Kind::kIndexed,
       .op = Op::kScatterElements,
       .operands = {"x", "index", "values"},
       .attributes = {OptionalInt("axis", 0), ScatterModeAttribute()},
       .shape_rule = kScatterElementsShape,
       .dtype_rule = DTypeRule::kSame,
       .special_operand = 1,
       .constraints = {kEqualDTypesRule, kNumbersToCombineRule},
       .gradient = ScatterElementsGradient,
       .evaluate = EvaluateScatterElements,
       .doc = "x with values combined into the elements that gather_elements reads; mode is set "
              "(the last one wins), add, mul, max or min. An index out of range changes nothing"},
  };
}

}  // namespace kiln::ops
