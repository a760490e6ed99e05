#include "compiler/partition/scatter/lines.h"

#include <limits>
#include <vector>

#include "compiler/graph/splat.h"

namespace kiln::partition {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::ScatterMode;

namespace {

// Returns the dimensions along which the index varies, the axis, then those along which it is
// constant.
std::vector<int64_t> LineOrder(const Node* scatter) {
  const ir::Shape& index = scatter->operand(1)->shape();
  const int64_t axis = scatter->attr<ir::ScatterAttr>().axis;
  std::vector<int64_t> order;
  for (const bool same : {false, true}) {
    if (same) order.push_back(axis);
    for (int64_t i = 0; i < static_cast<int64_t>(index.size()); ++i) {
      if (i != axis && (index[i] == 1) == same) order.push_back(i);
    }
  }
  return order;
}

int64_t LinesOf(const Node* scatter) {
  const ir::Shape& index = scatter->operand(1)->shape();
  return ir::NumElements(index) / index[scatter->attr<ir::ScatterAttr>().axis];
}

}  // namespace

ScatterLines ToLines(ops::Builder& b, const Node* scatter) {
  const auto [axis, mode] = scatter->attr<ir::ScatterAttr>();
  const std::vector<int64_t> order = LineOrder(scatter);
  const int64_t lines = LinesOf(scatter);
  const auto in_lines = [&](const Node* x) {
    const int64_t length = x->shape()[axis];
    const int64_t columns = ir::NumElements(x->shape()) / (lines * length);
    return b.Reshape(b.Permute(x, order), {lines, length, columns});
  };
  // Unsigned numbers beyond int64 become negative and stay out of range.
  const Node* index = in_lines(b.Cast(scatter->operand(1), DType::kInt64));
  return {in_lines(scatter->operand(0)), b.Reshape(index, {lines, index->shape()[1]}),
          in_lines(scatter->operand(2)), mode};
}

const Node* FromLines(ops::Builder& b, const Node* result, const Node* scatter) {
  const std::vector<int64_t> order = LineOrder(scatter);
  ir::Shape ordered;
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    ordered.push_back(scatter->shape()[order[i]]);
    back[order[i]] = static_cast<int64_t>(i);
  }
  return b.Permute(b.Reshape(result, ordered), back);
}

const Node* TermOf(ops::Builder& b, ScatterMode mode, const Node* value) {
  if (mode != ScatterMode::kMin) return value;
  return ir::IsFloat(value->dtype()) ? b.Neg(value) : b.Not(value);
}

const Node* ValueOf(ops::Builder& b, ScatterMode mode, const Node* term) {
  return TermOf(b, mode, term);
}

const Node* ReduceTerms(ops::Builder& b, ScatterMode mode, const Node* terms, int64_t axis) {
  const Op op = mode == ScatterMode::kAdd   ? Op::kReduceSum
                : mode == ScatterMode::kMul ? Op::kReduceProd
                                            : Op::kReduceMax;
  return b.Reduce(op, terms, {axis});
}

const Node* NeutralTerm(ops::Builder& b, ScatterMode mode, DType dtype) {
  if (mode == ScatterMode::kAdd) return b.ConstInt(dtype, 0);
  if (mode == ScatterMode::kMul) return b.ConstInt(dtype, 1);
  if (ir::IsFloat(dtype)) return b.Const(dtype, -std::numeric_limits<double>::infinity());
  if (!ir::IsSigned(dtype)) return b.ConstInt(dtype, 0);
  // The arithmetic shift gives -2^(bits-1).
  return b.ConstInt(dtype, std::numeric_limits<int64_t>::min() >> (64 - 8 * ir::SizeOf(dtype)));
}

const Node* CombineInto(ops::Builder& b, ScatterMode mode, const Node* x, const Node* values) {
  if (mode == ScatterMode::kAdd && graph::IsSplat(x, 0)) return values;
  return b.Binary(*ir::CombinerOf(mode), x, values);
}

}  // namespace kiln::partition
