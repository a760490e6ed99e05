// Shapes of composites.
#include "compiler/ops/attributes.h"
#include "compiler/ops/infer.h"
#include "compiler/ops/infer_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

Shape WithoutLast(const Shape& shape, size_t count) {
  return Shape(shape.begin(), shape.end() - static_cast<int64_t>(count));
}

// Two ints, one for height and one for width.
absl::StatusOr<std::vector<int64_t>> PairOf(const ShapeQuery& query, std::string_view name) {
  const std::vector<int64_t>& values = IntsOf(query.attributes, name);
  if (values.size() == 2) return values;
  return ShapeError("\"", name, "\" of \"", query.op.name, "\" has ", values.size(),
                    " entries; it needs 2, for height and width");
}

absl::StatusOr<int64_t> Padded(int64_t length, int64_t padding) {
  int64_t result = 0;
  if (padding < 0 || __builtin_mul_overflow(padding, int64_t{2}, &result) ||
      __builtin_add_overflow(result, length, &result)) {
    return ShapeError("a padding of ", padding, " on a dimension of size ", length);
  }
  return result;
}

// The last two dimensions after a window has moved over them.
ShapeResult SlidePlane(const Shape& plane, const std::vector<int64_t>& size,
                       const std::vector<int64_t>& stride, const std::vector<int64_t>& padding,
                       const std::vector<int64_t>& dilation) {
  Shape result;
  for (int i = 0; i < 2; ++i) {
    const auto length = Padded(plane[i], padding[i]);
    if (!length.ok()) return length.status();
    const auto positions = WindowPositions(*length, size[i], stride[i], dilation[i]);
    if (!positions.ok()) return positions.status();
    result.push_back(*positions);
  }
  return result;
}

absl::Status CheckConvOperands(const ShapeQuery& query, int64_t groups) {
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  if (x.size() != 4 || weight.size() != 4) {
    return ShapeError("conv2d of x ", ToString(x), " and weight ", ToString(weight),
                      "; x must be (N, C, H, W), weight (O, C / groups, KH, KW)");
  }
  if (groups < 1 || x[1] % groups != 0 || weight[0] % groups != 0) {
    return ShapeError("conv2d in ", groups, " groups with ", x[1], " channels in and ", weight[0],
                      " out; groups must divide both");
  }
  if (weight[1] != x[1] / groups) {
    return ShapeError("conv2d of x ", ToString(x), " and weight ", ToString(weight), " in ", groups,
                      " groups: the weight's dimension 1 must be ", x[1] / groups);
  }
  if (query.operands.size() == 3 && query.operands[2] != Shape{weight[0]}) {
    return ShapeError("conv2d's bias has shape ", ToString(query.operands[2]), "; it must be ",
                      ToString({weight[0]}));
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> BroadcastLeading(const ShapeQuery& query, size_t operands) {
  std::vector<Shape> leading;
  for (size_t i = 0; i < operands; ++i) leading.push_back(WithoutLast(query.operands[i], 2));
  return BroadcastShapes(leading);
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

ShapeResult OneHotShape(const ShapeQuery& query) {
  const int64_t classes = IntOf(query.attributes, "classes");
  if (classes < 1) return ShapeError("one_hot of ", classes, " classes; at least 1 is needed");
  Shape result = query.operands[0];
  result.push_back(classes);
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
  const bool ranks = q.size() >= 2 && k.size() >= 2 && v.size() >= 2;
  if (!ranks || q.back() != k.back() || k[k.size() - 2] != v[v.size() - 2]) {
    return ShapeError("attention of query ", ToString(q), ", key ", ToString(k), " and value ",
                      ToString(v), "; they must be (…, L, E), (…, S, E) and (…, S, V)");
  }
  const auto leading = BroadcastLeading(query, 3);
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

ShapeResult Conv2dShape(const ShapeQuery& query) {
  const auto stride = PairOf(query, "stride");
  if (!stride.ok()) return stride.status();
  const auto padding = PairOf(query, "padding");
  if (!padding.ok()) return padding.status();
  const auto dilation = PairOf(query, "dilation");
  if (!dilation.ok()) return dilation.status();
  const absl::Status operands = CheckConvOperands(query, IntOf(query.attributes, "groups"));
  if (!operands.ok()) return operands;
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  const auto plane = SlidePlane({x[2], x[3]}, {weight[2], weight[3]}, *stride, *padding, *dilation);
  if (!plane.ok()) return plane;
  return Shape{x[0], weight[0], (*plane)[0], (*plane)[1]};
}

ShapeResult Pool2dShape(const ShapeQuery& query) {
  const Shape& x = query.operands[0];
  if (x.size() < 2) {
    return ShapeError("\"", query.op.name, "\" of shape ", ToString(x), "; it must be (…, H, W)");
  }
  const auto kernel = PairOf(query, "kernel");
  if (!kernel.ok()) return kernel.status();
  const auto padding = PairOf(query, "padding");
  if (!padding.ok()) return padding.status();
  const bool own_stride = !IntsOf(query.attributes, "stride").empty();
  const auto stride = own_stride ? PairOf(query, "stride") : kernel;
  if (!stride.ok()) return stride.status();
  for (int i = 0; i < 2; ++i) {
    if ((*padding)[i] > (*kernel)[i] / 2) {
      return ShapeError("a padding of ", (*padding)[i], " for a kernel of ", (*kernel)[i],
                        "; at most half the kernel makes sense");
    }
  }
  const auto plane = SlidePlane({x[x.size() - 2], x.back()}, *kernel, *stride, *padding, {1, 1});
  if (!plane.ok()) return plane;
  Shape result = WithoutLast(x, 2);
  result.insert(result.end(), plane->begin(), plane->end());
  return result;
}

}  // namespace kiln::ops
