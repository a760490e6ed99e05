// Shapes of what is read and written at indices that are data.
#include <algorithm>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

absl::StatusOr<int64_t> AxisOf(const ShapeQuery& query) {
  return NormalizeAxis(IntOf(query.attributes, "axis"), query.operands[0].size());
}

absl::Status CheckValues(const ShapeQuery& query, const Shape& values, const Shape& wanted) {
  if (values == wanted) return absl::OkStatus();
  return ShapeError("values of shape ", ToString(values), " to scatter into ",
                    ToString(query.operands[0]), " at an index of shape ",
                    ToString(query.operands[1]), "; they must have shape ", ToString(wanted));
}

absl::Status CheckBroadcast(const Shape& from, const Shape& to, std::string_view what) {
  const auto together = BroadcastShapes({from, to});
  if (together.ok() && *together == to) return absl::OkStatus();
  return ShapeError(what, " of shape ", ToString(from), " does not broadcast to ", ToString(to));
}

absl::Status CheckRank(const ShapeQuery& query) {
  const Shape& x = query.operands[0];
  const Shape& index = query.operands[1];
  if (index.size() == x.size()) return absl::OkStatus();
  return ShapeError("an index of shape ", ToString(index), " for a tensor of shape ", ToString(x),
                    "; both must have the same number of dimensions");
}

// x's shape with the index's size at the axis.
Shape WithIndexSize(const ShapeQuery& query, int64_t axis) {
  Shape result = query.operands[0];
  result[axis] = query.operands[1][axis];
  return result;
}

}  // namespace

ShapeResult GatherElementsShape(const ShapeQuery& query) {
  if (absl::Status rank = CheckRank(query); !rank.ok()) return rank;
  const auto axis = AxisOf(query);
  if (!axis.ok()) return axis.status();
  const Shape result = WithIndexSize(query, *axis);
  const absl::Status fits = CheckBroadcast(query.operands[1], result, "an index");
  if (!fits.ok()) return fits;
  return result;
}

ShapeResult ScatterElementsShape(const ShapeQuery& query) {
  const ShapeResult gathered = GatherElementsShape(query);
  if (!gathered.ok()) return gathered;
  const absl::Status fits = CheckValues(query, query.operands[2], *gathered);
  if (!fits.ok()) return fits;
  return query.operands[0];
}

ShapeResult GatherShape(const ShapeQuery& query) {
  const Shape& x = query.operands[0];
  const Shape& index = query.operands[1];
  const auto axis = AxisOf(query);
  if (!axis.ok()) return axis.status();
  Shape result(x.begin(), x.begin() + *axis);
  result.insert(result.end(), index.begin(), index.end());
  result.insert(result.end(), x.begin() + *axis + 1, x.end());
  return result;
}

ShapeResult ScatterShape(const ShapeQuery& query) {
  const ShapeResult gathered = GatherShape(query);
  if (!gathered.ok()) return gathered;
  const absl::Status fits = CheckValues(query, query.operands[2], *gathered);
  if (!fits.ok()) return fits;
  return query.operands[0];
}

ShapeResult TakeAlongAxisShape(const ShapeQuery& query) {
  if (absl::Status rank = CheckRank(query); !rank.ok()) return rank;
  const auto axis = AxisOf(query);
  if (!axis.ok()) return axis.status();
  Shape x = query.operands[0];
  x[*axis] = query.operands[1][*axis];
  return BroadcastShapes({x, query.operands[1]});
}

ShapeResult PutAlongAxisShape(const ShapeQuery& query) {
  const ShapeResult places = GatherElementsShape(query);
  if (!places.ok()) return places;
  const absl::Status fits = CheckBroadcast(query.operands[2], *places, "values");
  if (!fits.ok()) return fits;
  return query.operands[0];
}

// Of x at the indices from operand `first` on.
static ShapeResult IndexedShape(const ShapeQuery& query, size_t first) {
  const Shape& x = query.operands[0];
  const auto axis = AxisOf(query);
  if (!axis.ok()) return axis.status();
  const absl::Span<const Shape> indices = query.operands.subspan(first);
  if (*axis + indices.size() > x.size()) {
    return ShapeError(indices.size(), " indices from axis ", *axis, " on, of a tensor with ",
                      x.size(), " dimensions");
  }
  const ShapeResult together = BroadcastShapes(indices);
  if (!together.ok()) return together;
  Shape result(x.begin(), x.begin() + *axis);
  result.insert(result.end(), together->begin(), together->end());
  result.insert(result.end(), x.begin() + *axis + static_cast<int64_t>(indices.size()), x.end());
  return result;
}

ShapeResult IndexShape(const ShapeQuery& query) { return IndexedShape(query, 1); }

ShapeResult IndexPutShape(const ShapeQuery& query) {
  const ShapeResult places = IndexedShape(query, 2);
  if (!places.ok()) return places;
  const absl::Status fits = CheckBroadcast(query.operands[1], *places, "values");
  if (!fits.ok()) return fits;
  return query.operands[0];
}

ShapeResult OneHotShape(const ShapeQuery& query) {
  const int64_t classes = IntOf(query.attributes, "classes");
  if (classes < 1) return ShapeError("one_hot of ", classes, " classes; at least 1 is needed");
  Shape result = query.operands[0];
  result.push_back(classes);
  return result;
}

}  // namespace kiln::ops
