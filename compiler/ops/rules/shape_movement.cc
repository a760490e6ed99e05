// Shapes of movement and indexed ops.
#include <algorithm>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

// A list with two entries for each dimension.
absl::Status CheckPairs(const std::vector<int64_t>& pairs, const Shape& operand,
                        std::string_view name, std::string_view meaning) {
  if (pairs.size() == 2 * operand.size()) return absl::OkStatus();
  return ShapeError("\"", name, "\" has ", pairs.size(), " entries for shape ", ToString(operand),
                    "; it needs ", 2 * operand.size(), ": ", meaning);
}

}  // namespace

ShapeResult ReshapeShape(const ShapeQuery& query) {
  const Shape& from = query.operands[0];
  const Shape& to = IntsOf(query.attributes, "shape");
  const absl::Status legal = CheckShape(to);
  if (!legal.ok()) return legal;
  if (ir::NumElements(from) != ir::NumElements(to)) {
    return ShapeError("cannot reshape ", ToString(from), " (", ir::NumElements(from),
                      " elements) to ", ToString(to), " (", ir::NumElements(to), " elements)");
  }
  return to;
}

ShapeResult PermuteShape(const ShapeQuery& query) {
  const Shape& operand = query.operands[0];
  const std::vector<int64_t>& axes = IntsOf(query.attributes, "axes");
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = sorted.size() == operand.size();
  for (size_t i = 0; is_permutation && i < sorted.size(); ++i) {
    is_permutation = sorted[i] == static_cast<int64_t>(i);
  }
  if (!is_permutation) {
    return ShapeError("\"axes\" ", ToString(axes), " is not a permutation of the ", operand.size(),
                      " dimensions of shape ", ToString(operand));
  }
  Shape result;
  for (const int64_t axis : axes) result.push_back(operand[axis]);
  return result;
}

ShapeResult ExpandShape(const ShapeQuery& query) {
  const Shape& from = query.operands[0];
  const Shape& to = IntsOf(query.attributes, "shape");
  bool fits = to.size() >= from.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    const int64_t target = to[to.size() - from.size() + i];
    fits = from[i] == target || from[i] == 1;
  }
  if (!fits) {
    return ShapeError("cannot expand ", ToString(from), " to ", ToString(to),
                      ": from the last dimension on, sizes must be equal or 1");
  }
  return to;
}

ShapeResult PadShape(const ShapeQuery& query) {
  const Shape& operand = query.operands[0];
  const std::vector<int64_t>& padding = IntsOf(query.attributes, "padding");
  const absl::Status pairs =
      CheckPairs(padding, operand, "padding", "before and after for each dimension");
  if (!pairs.ok()) return pairs;
  Shape result = operand;
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] < 0) {
      return ShapeError("\"padding\" ", ToString(padding), " has a negative entry; shrink cuts");
    }
    if (__builtin_add_overflow(result[i / 2], padding[i], &result[i / 2])) {
      return ShapeError("\"padding\" ", ToString(padding), " makes ", ToString(operand),
                        " too large");
    }
  }
  return result;
}

ShapeResult ShrinkShape(const ShapeQuery& query) {
  const Shape& operand = query.operands[0];
  const std::vector<int64_t>& bounds = IntsOf(query.attributes, "bounds");
  const absl::Status pairs =
      CheckPairs(bounds, operand, "bounds", "begin and end for each dimension");
  if (!pairs.ok()) return pairs;
  Shape result;
  for (size_t i = 0; i < operand.size(); ++i) {
    const int64_t begin = bounds[2 * i];
    const int64_t end = bounds[2 * i + 1];
    if (begin < 0 || end < begin || end > operand[i]) {
      return ShapeError("bounds [", begin, ", ", end, ") of dimension ", i, " of shape ",
                        ToString(operand), "; 0 <= begin <= end <= ", operand[i], " must hold");
    }
    result.push_back(end - begin);
  }
  return result;
}

ShapeResult FlipShape(const ShapeQuery& query) {
  const Shape& operand = query.operands[0];
  const auto axes = NormalizeAxes(IntsOf(query.attributes, "axes"), operand.size());
  if (!axes.ok()) return axes.status();
  return operand;
}

absl::StatusOr<int64_t> WindowPositions(int64_t length, int64_t size, int64_t stride,
                                        int64_t dilation) {
  if (size < 1 || stride < 1 || dilation < 1) {
    return ShapeError("a window of size ", size, ", stride ", stride, " and dilation ", dilation,
                      "; each must be at least 1");
  }
  int64_t reach = 0;
  if (__builtin_mul_overflow(size - 1, dilation, &reach) || reach >= length) {
    return ShapeError("a window of size ", size, " and dilation ", dilation,
                      " does not fit into a dimension of size ", length);
  }
  return (length - reach - 1) / stride + 1;
}

ShapeResult WindowShape(const ShapeQuery& query) {
  Shape result = query.operands[0];
  const auto axis = NormalizeAxis(IntOf(query.attributes, "axis"), result.size());
  if (!axis.ok()) return axis.status();
  const int64_t size = IntOf(query.attributes, "size");
  const auto positions = WindowPositions(result[*axis], size, IntOf(query.attributes, "stride"),
                                         IntOf(query.attributes, "dilation"));
  if (!positions.ok()) return positions.status();
  result[*axis] = *positions;
  result.push_back(size);
  return result;
}

ShapeResult UnwindowShape(const ShapeQuery& query) {
  Shape result = query.operands[0];
  if (result.size() < 2) {
    return ShapeError("unwindow of shape ", ToString(result),
                      "; it needs an axis and a last dimension, the window's");
  }
  // Negative axes count without the window's dimension, as they do in the window op.
  const auto axis = NormalizeAxis(IntOf(query.attributes, "axis"), result.size() - 1);
  if (!axis.ok()) return axis.status();
  const int64_t length = IntOf(query.attributes, "length");
  const auto positions = WindowPositions(length, result.back(), IntOf(query.attributes, "stride"),
                                         IntOf(query.attributes, "dilation"));
  if (!positions.ok()) return positions.status();
  if (*positions != result[*axis]) {
    return ShapeError("unwindow of axis ", *axis, " of shape ", ToString(result), " to length ",
                      length, ": that length has ", *positions, " windows, not ", result[*axis]);
  }
  result[*axis] = length;
  return result;
}

}  // namespace kiln::ops
