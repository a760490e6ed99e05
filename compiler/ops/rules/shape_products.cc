// Shapes of composites.
#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

Shape WithoutLast(const Shape& shape, size_t count) {
  return Shape(shape.begin(), shape.end() - static_cast<int64_t>(count));
}

absl::StatusOr<Shape> BroadcastLeading(const ShapeQuery& query, size_t operands) {
  std::vector<Shape> leading;
  for (size_t i = 0; i < operands; ++i) leading.push_back(WithoutLast(query.operands[i], 2));
  return BroadcastShapes(leading);
}

// Leading dimensions of attention whose key and value have fewer heads than query: the last one is
// the heads.
absl::StatusOr<Shape> GroupedLeading(const ShapeQuery& query) {
  std::vector<Shape> batches;
  std::vector<int64_t> heads;
  for (size_t i = 0; i < 3; ++i) {
    const Shape& operand = query.operands[i];
    batches.push_back(WithoutLast(operand, 3));
    heads.push_back(operand[operand.size() - 3]);
  }
  if (heads[1] < 1 || heads[1] != heads[2] || heads[0] % heads[1] != 0) {
    return ShapeError("attention in groups with ", heads[0], " heads of query, ", heads[1],
                      " of key and ", heads[2], " of value; the last two must be equal and divide ",
                      "the first");
  }
  auto leading = BroadcastShapes(batches);
  if (leading.ok()) leading->push_back(heads[0]);
  return leading;
}

}  // namespace

ShapeResult ConcatShape(const ShapeQuery& query) {
  Shape result = query.operands[0];
  const auto axis = NormalizeAxis(IntOf(query.attributes, "axis"), result.size());
  if (!axis.ok()) return axis.status();
  for (const Shape& operand : query.operands.subspan(1)) {
    Shape other = operand;
    if (other.size() == result.size()) other[*axis] = result[*axis];
    if (other != result) {
      return ShapeError("cannot concat ", ToString(query.operands[0]), " and ", ToString(operand),
                        " along axis ", *axis, ": all other sizes must agree");
    }
    if (__builtin_add_overflow(result[*axis], operand[*axis], &result[*axis])) {
      return ShapeError("concat along axis ", *axis, " is too large");
    }
  }
  return result;
}

ShapeResult MatmulShape(const ShapeQuery& query) {
  Shape a = query.operands[0];
  Shape b = query.operands[1];
  if (a.empty() || b.empty()) {
    return ShapeError("matmul of ", ToString(a), " and ", ToString(b),
                      "; scalars have no dimension to sum over, use mul");
  }
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.back() != b[b.size() - 2]) {
    return ShapeError("matmul of ", ToString(query.operands[0]), " and ",
                      ToString(query.operands[1]), ": the first's last dimension (", a.back(),
                      ") must equal the second's ", column ? "only" : "second to last",
                      " dimension (", b[b.size() - 2], ")");
  }
  const auto batch = BroadcastShapes({WithoutLast(a, 2), WithoutLast(b, 2)});
  if (!batch.ok()) {
    return ShapeError("matmul of ", ToString(query.operands[0]), " and ",
                      ToString(query.operands[1]), ": ", batch.status().message());
  }
  Shape result = *batch;
  if (!row) result.push_back(a[a.size() - 2]);
  if (!column) result.push_back(b.back());
  return result;
}

ShapeResult LinearShape(const ShapeQuery& query) {
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  if (x.empty() || weight.size() != 2 || x.back() != weight[1]) {
    return ShapeError("linear of x ", ToString(x), " and weight ", ToString(weight),
                      "; x must be (…, in), weight (out, in)");
  }
  if (query.operands.size() == 3 && query.operands[2] != Shape{weight[0]}) {
    return ShapeError("linear's bias has shape ", ToString(query.operands[2]), "; it must be ",
                      ToString({weight[0]}));
  }
  Shape result = WithoutLast(x, 1);
  result.push_back(weight[0]);
  return result;
}

ShapeResult AttentionShape(const ShapeQuery& query) {
  const Shape& q = query.operands[0];
  const Shape& k = query.operands[1];
  const Shape& v = query.operands[2];
  const bool grouped = BoolOf(query.attributes, "grouped");
  const size_t least = grouped ? 3 : 2;
  const bool ranks = q.size() >= least && k.size() >= least && v.size() >= least;
  if (!ranks || q.back() != k.back() || k[k.size() - 2] != v[v.size() - 2]) {
    return ShapeError("attention of query ", ToString(q), ", key ", ToString(k), " and value ",
                      ToString(v), "; they must be (…, L, E), (…, S, E) and (…, S, V)",
                      grouped ? ", with heads before" : "");
  }
  const auto leading = grouped ? GroupedLeading(query) : BroadcastLeading(query, 3);
  if (!leading.ok()) return leading.status();
  if (query.operands.size() == 4) {
    Shape scores = *leading;
    scores.push_back(q[q.size() - 2]);
    scores.push_back(k[k.size() - 2]);
    const auto masked = BroadcastShapes({scores, query.operands[3]});
    if (!masked.ok() || *masked != scores) {
      return ShapeError("attention's mask has shape ", ToString(query.operands[3]),
                        "; it must broadcast to ", ToString(scores));
    }
  }
  Shape result = *leading;
  result.push_back(q[q.size() - 2]);
  result.push_back(v.back());
  return result;
}

}  // namespace kiln::ops
