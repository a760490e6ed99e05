// Pooling: reductions over sliding windows, which are views.
#include <algorithm>
#include <limits>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/composites/windows.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/sliding.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;
using Ints = std::vector<int64_t>;

Sliding SlidingOf(const Node* x, const Attributes& attributes) {
  return PoolSliding(x->shape(), attributes).value();
}

Ints LastAxes(size_t rank) {
  Ints axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(-1 - static_cast<int64_t>(i));
  return axes;
}

const Node* SumOfWindows(Builder& b, const Node* x, const Sliding& sliding) {
  return b.Sum(Windows(b, PadSpatial(b, x, sliding), sliding), LastAxes(sliding.rank()));
}

// Padding must never be the maximum, so a mask that is padded in the same way replaces it by the
// lowest value.
Expansion ExpandMaxPool(Builder& b, Operands operands, const Attributes& attributes) {
  const Node* x = operands[0];
  const Sliding sliding = SlidingOf(x, attributes);
  const Node* padded = PadSpatial(b, x, sliding);
  const Node* inside = nullptr;
  if (padded != x) {
    inside = PadSpatial(b, b.Full(DType::kBool, x->shape(), 1), sliding);
    const double lowest = -std::numeric_limits<double>::infinity();
    padded = b.Where(inside, padded, b.Const(x->dtype(), lowest));
    inside = Windows(b, inside, sliding);
  }
  return MaxOfFirst(b, Windows(b, padded, sliding), LastAxes(sliding.rank()), inside);
}

// The part of a padded dimension whose elements count in a mean.
struct Counted {
  int64_t begin, end;
};

Counted CountedOf(const Sliding& sliding, int64_t length, size_t i, bool include_padding) {
  if (!include_padding) return {sliding.before[i], sliding.before[i] + length};
  return {0, sliding.before[i] + length + sliding.after[i] - sliding.hanging[i]};
}

bool AllCount(const Sliding& sliding, Counted counted, size_t i) {
  // If the last window is within that part, all are, and their count is a constant.
  const int64_t last = (sliding.positions[i] - 1) * sliding.stride[i];
  return counted.begin == 0 && last + sliding.size[i] <= counted.end;
}

// min(start + size, end) - max(start, begin) along one of the last dimensions.
const Node* CountAlong(Builder& b, const Sliding& sliding, Counted counted, size_t i) {
  const int64_t largest = std::max({counted.end, sliding.size[i], sliding.stride[i]});
  // Uses narrow integers if no start and no end exceeds them.
  const bool small = largest < (int64_t{1} << 31) / 3;
  const DType dtype = small ? DType::kInt32 : DType::kInt64;
  Shape shape(sliding.rank(), 1);
  shape[i] = sliding.positions[i];
  const auto constant = [&](int64_t value) { return b.ConstInt(dtype, value); };
  const Node* start =
      b.Mul(b.Iota(dtype, shape, static_cast<int64_t>(i)), constant(sliding.stride[i]));
  const Node* high =
      b.Binary(Op::kMin, b.Add(start, constant(sliding.size[i])), constant(counted.end));
  return b.Sub(high, b.Binary(Op::kMax, start, constant(counted.begin)));
}

Expansion ExpandAvgPool(Builder& b, Operands operands, const Attributes& attributes) {
  const Node* x = operands[0];
  const Sliding sliding = SlidingOf(x, attributes);
  const int64_t divisor = IntOf(attributes, "divisor_override");
  const bool include_padding = BoolOf(attributes, "count_include_pad");
  double same = static_cast<double>(divisor);
  const Node* varying = nullptr;
  if (divisor == 0) {
    same = 1;
    const Shape spatial = SpatialOf(x->shape(), sliding.rank());
    for (size_t i = 0; i < sliding.rank(); ++i) {
      const Counted counted = CountedOf(sliding, spatial[i], i, include_padding);
      // Dimensions in which all windows have the same count give a constant factor of the divisor.
      if (AllCount(sliding, counted, i)) {
        same *= static_cast<double>(sliding.size[i]);
        continue;
      }
      const Node* count = b.Cast(CountAlong(b, sliding, counted, i), x->dtype());
      varying = varying == nullptr ? count : b.Mul(varying, count);
    }
  }
  const Node* mean = b.Mul(SumOfWindows(b, x, sliding), 1.0 / same);
  return varying == nullptr ? mean : b.Div(mean, varying);
}

// A window of only zeros gives zero, with gradient 0.
Expansion ExpandLpPool(Builder& b, Operands operands, const Attributes& attributes) {
  const Node* x = WithRoomForSquares(b, operands[0]);
  const double norm = FloatOf(attributes, "norm");
  const Node* sum =
      SumOfWindows(b, b.Binary(Op::kPow, x, b.Const(x->dtype(), norm)), SlidingOf(x, attributes));
  return b.Cast(Root(b, sum, norm), operands[0]->dtype());
}

constexpr Rule kPoolShape = {"pool", "x", R"rule(
  rank = spatial_rank(op)
  kernel = attributes["kernel"]
  check len(kernel) == rank:
    '"kernel" has {len(kernel)} entries; it needs {rank}, one for each spatial dimension'
  check len(x) >= rank:
    '"{op.name}" of shape {x}; it needs at least {rank} dimensions, the spatial ones last'
  -> x[:-rank] + pool_positions(x[-rank:], attributes)
)rule"};

OpDef Pool(std::string_view kind, size_t rank, DTypeRule dtype_rule, DTypeClass operand_class,
           ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(kind, {"x"}, dtype_rule, operand_class, expand, doc);
  row.attributes = {RequiredInts("kernel"), OptionalInts("stride", {}),
                    OptionalInts("padding", Ints(rank, 0)), OptionalBool("ceil_mode", false)};
  row.shape_rule = kPoolShape;
  return row;
}

OpDef MaxPool(std::string_view name, size_t rank) {
  OpDef row =
      Pool(name, rank, DTypeRule::kSame, DTypeClass::kNumeric, ExpandMaxPool,
           "The largest of each window; padding never wins, of equal ones the first has the "
           "gradient");
  row.attributes.push_back(OptionalInts("dilation", Ints(rank, 1)));
  return row;
}

OpDef AvgPool(std::string_view name, size_t rank) {
  OpDef row = Pool(name, rank, DTypeRule::kPromoteFloat, DTypeClass::kAny, ExpandAvgPool,
                   "The mean of each window; padding counts as zeros with count_include_pad, what "
                   "ceil_mode adds never counts; a divisor_override above 0 replaces the count");
  row.attributes.push_back(OptionalBool("count_include_pad", true));
  row.attributes.push_back(NotNegative(OptionalInt("divisor_override", 0)));
  return row;
}

OpDef LpPool(std::string_view name, size_t rank) {
  OpDef row = Pool(name, rank, DTypeRule::kPromoteFloat, DTypeClass::kAny, ExpandLpPool,
                   "The norm-th root of the sum of each window's elements to the power norm; 0, "
                   "with gradient 0, where the sum is not above 0");
  row.attributes.push_back(AboveZero(OptionalFloat("norm", 2)));
  return row;
}

}  // namespace

std::vector<OpDef> PoolComposites() {
  return {
      MaxPool("max_pool1d", 1), MaxPool("max_pool2d", 2), MaxPool("max_pool3d", 3),
      AvgPool("avg_pool1d", 1), AvgPool("avg_pool2d", 2), AvgPool("avg_pool3d", 3),
      LpPool("lp_pool1d", 1),   LpPool("lp_pool2d", 2),   LpPool("lp_pool3d", 3),
  };
}

}  // namespace kiln::ops
