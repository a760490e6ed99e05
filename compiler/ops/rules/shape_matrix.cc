// Shapes of ops on whole arrays and on matrices.
#include <algorithm>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/einsum.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

Shape WithoutLastTwo(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

}  // namespace

absl::Status CheckSquare(const OpDef& op, const Shape& shape) {
  if (shape.size() >= 2 && shape[shape.size() - 2] == shape.back()) return absl::OkStatus();
  return ShapeError("\"", op.name, "\" of shape ", ToString(shape),
                    "; it must be (…, N, N), square matrices");
}

ShapeResult TopKShape(const ShapeQuery& query) {
  Shape shape = query.operands[0];
  if (shape.empty()) return ShapeError("topk of a scalar; it needs a dimension to choose from");
  const auto axis = NormalizeAxis(IntOf(query.attributes, "axis"), shape.size());
  if (!axis.ok()) return axis.status();
  const int64_t count = IntOf(query.attributes, "k");
  if (count < 0 || count > shape[*axis]) {
    return ShapeError("topk of ", count, " elements along a dimension of size ", shape[*axis],
                      "; k must be in [0, ", shape[*axis], "]");
  }
  shape[*axis] = count;
  return shape;
}

ShapeResult EinsumShape(const ShapeQuery& query) {
  const auto equation = ParseEinsum(StringOf(query.attributes, "equation"), query.operands);
  if (!equation.ok()) return equation.status();
  return equation->ResultShape();
}

ShapeResult DiagonalShape(const ShapeQuery& query) {
  const Shape& shape = query.operands[0];
  const auto rows = NormalizeAxis(IntOf(query.attributes, "axis1"), shape.size());
  if (!rows.ok()) return rows.status();
  const auto columns = NormalizeAxis(IntOf(query.attributes, "axis2"), shape.size());
  if (!columns.ok()) return columns.status();
  if (*rows == *columns) {
    return ShapeError("the diagonal of axis ", *rows, " and itself; it needs two axes");
  }
  const int64_t offset = IntOf(query.attributes, "offset");
  // What an offset leaves of a dimension; one that is beyond it leaves nothing.
  const auto left = [](int64_t size, int64_t cut) { return cut >= size ? 0 : size - cut; };
  const int64_t height =
      offset < 0 ? left(shape[*rows], -std::max(offset, -INT64_MAX)) : shape[*rows];
  const int64_t width = offset > 0 ? left(shape[*columns], offset) : shape[*columns];
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (axis != *rows && axis != *columns) result.push_back(shape[i]);
  }
  result.push_back(std::min(height, width));
  return result;
}

ShapeResult DiagEmbedShape(const ShapeQuery& query) {
  Shape shape = query.operands[0];
  if (shape.empty()) return ShapeError("diag_embed of a scalar; it needs a dimension");
  const int64_t offset = IntOf(query.attributes, "offset");
  if (offset > kMaxElements || offset < -kMaxElements) {
    return ShapeError("diag_embed with an offset of ", offset, "; it is too far");
  }
  shape.back() += offset < 0 ? -offset : offset;
  shape.push_back(shape.back());
  return shape;
}

ShapeResult SolveShape(const ShapeQuery& query) {
  const Shape& a = query.operands[0];
  const Shape& b = query.operands[1];
  const absl::Status square = CheckSquare(query.op, a);
  if (!square.ok()) return square;
  const bool vector = b.size() == 1;
  const int64_t rows = b.empty() ? -1 : vector ? b[0] : b[b.size() - 2];
  if (rows != a.back()) {
    return ShapeError("\"", query.op.name, "\" of a ", ToString(a), " and b ", ToString(b),
                      "; b must be (", a.back(), ",) or (…, ", a.back(), ", M)");
  }
  if (vector) return Shape(a.begin(), a.end() - 1);
  auto result = BroadcastShapes({WithoutLastTwo(a), WithoutLastTwo(b)});
  if (!result.ok()) return result;
  result->insert(result->end(), {rows, b.back()});
  return result;
}

ShapeResult DeterminantShape(const ShapeQuery& query) {
  const absl::Status square = CheckSquare(query.op, query.operands[0]);
  if (!square.ok()) return square;
  return WithoutLastTwo(query.operands[0]);
}

ShapeResult QrShape(const ShapeQuery& query) {
  Shape shape = query.operands[0];
  if (shape.size() < 2) {
    return ShapeError("qr of shape ", ToString(shape), "; it must be (…, M, N), matrices");
  }
  const std::string& part = StringOf(query.attributes, "part");
  const int64_t rows = shape[shape.size() - 2];
  const int64_t inner = BoolOf(query.attributes, "complete") ? rows : std::min(rows, shape.back());
  (part == "q" ? shape.back() : shape[shape.size() - 2]) = inner;
  return shape;
}

}  // namespace kiln::ops
