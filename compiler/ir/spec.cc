#include "compiler/ir/spec.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "compiler/ir/spec_shapes.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/ir/walk.h"

namespace kiln::ir {
namespace {

struct DTypeLaw {
  std::string_view text;
  bool (*holds)(const Node& node);
};

DType OperandDType(const Node& node, int i = 0) { return node.operand(i)->dtype(); }
bool IsNumber(DType dtype) { return IsFloat(dtype) || IsInteger(dtype); }
bool IsWhole(DType dtype) { return IsInteger(dtype) || dtype == DType::kBool; }

bool AllSame(const Node& node) {
  return std::all_of(node.operands().begin(), node.operands().end(),
                     [&](const Node* operand) { return operand->dtype() == node.dtype(); });
}
bool Compare(const Node& node) {
  return node.dtype() == DType::kBool && OperandDType(node, 0) == OperandDType(node, 1);
}
bool Where(const Node& node) {
  return OperandDType(node, 0) == DType::kBool && OperandDType(node, 1) == node.dtype() &&
         OperandDType(node, 2) == node.dtype();
}
bool Gradient(const Node& node) {
  bool upstream = node.operands().size() < 3 || OperandDType(node, 2) == OperandDType(node, 0);
  return IsFloat(OperandDType(node, 0)) && IsFloat(OperandDType(node, 1)) &&
         node.dtype() == OperandDType(node, 1) && upstream;
}
bool Load(const Node& node) {
  return OperandDType(node) == DType::kInt64 &&
         (node.operands().size() < 2 || OperandDType(node, 1) == DType::kBool);
}
bool Reduce(const Node& node) {
  bool ranges = std::all_of(node.operands().begin() + 1, node.operands().end(),
                            [](const Node* operand) { return operand->op() == Op::kRange; });
  // For bools only the maximum is allowed; it is "or".
  bool kind = node.attr<ReduceAttr>().kind == ReduceKind::kMax || IsNumber(node.dtype());
  return OperandDType(node) == node.dtype() && ranges && kind;
}

constexpr DTypeLaw kAny = {"any", [](const Node&) { return true; }};
constexpr DTypeLaw kConstFits = {"the value is in the dtype's range", [](const Node& node) {
                                   return FitsDType(node.attr<ConstValue>(), node.dtype());
                                 }};
constexpr DTypeLaw kNumberSource = {"a number",
                                    [](const Node& node) { return IsNumber(node.dtype()); }};
constexpr DTypeLaw kSame = {"operands and result have one dtype", AllSame};
constexpr DTypeLaw kSameNumber = {
    "operands and result have one dtype, a number",
    [](const Node& node) { return AllSame(node) && IsNumber(node.dtype()); }};
constexpr DTypeLaw kSameFloat = {
    "operands and result have one dtype, a float",
    [](const Node& node) { return AllSame(node) && IsFloat(node.dtype()); }};
constexpr DTypeLaw kSameWhole = {
    "operands and result have one dtype, an integer or bool",
    [](const Node& node) { return AllSame(node) && IsWhole(node.dtype()); }};
constexpr DTypeLaw kSameInteger = {
    "operands and result have one dtype, an integer",
    [](const Node& node) { return AllSame(node) && IsInteger(node.dtype()); }};
constexpr DTypeLaw kSameSize = {
    "elements of one size, neither bool", [](const Node& node) {
      bool has_bool = node.dtype() == DType::kBool || OperandDType(node) == DType::kBool;
      return SizeOf(node.dtype()) == SizeOf(OperandDType(node)) && (!has_bool || AllSame(node));
    }};
constexpr DTypeLaw kCompare = {"operands have one dtype, the result is bool", Compare};
constexpr DTypeLaw kWhere = {"a bool, then two of the result's dtype", Where};
constexpr DTypeLaw kGatherElements = {
    "the first operand's; the index is an integer", [](const Node& node) {
      return OperandDType(node) == node.dtype() && IsInteger(OperandDType(node, 1));
    }};
constexpr DTypeLaw kScatterElements = {
    "x, values and result have one dtype, a number unless they are set; the index is an integer",
    [](const Node& node) {
      const bool combines = CombinerOf(node.attr<ScatterAttr>().mode).has_value();
      return OperandDType(node) == node.dtype() && IsInteger(OperandDType(node, 1)) &&
             OperandDType(node, 2) == node.dtype() && (!combines || IsNumber(node.dtype()));
    }};
constexpr DTypeLaw kGradient = {"floats; the result's is that of x", Gradient};
constexpr DTypeLaw kRange = {"int64, with an extent that is not negative", [](const Node& node) {
                               return node.dtype() == DType::kInt64 &&
                                      node.attr<RangeAttr>().extent >= 0;
                             }};
constexpr DTypeLaw kLoad = {"an int64 index, then a bool", Load};
constexpr DTypeLaw kReduce = {
    "a value of the result's dtype (a number, except for max), then ranges", Reduce};

// One bit per level.
constexpr uint8_t kT = 1 << static_cast<int>(Level::kTensor);
constexpr uint8_t kK = 1 << static_cast<int>(Level::kKernel);
constexpr int kMany = std::numeric_limits<int>::max();
// Indices of Attribute's alternatives.
enum AttributeKind : size_t {
  kNone,
  kConst,
  kInput,
  kInt,
  kInts,
  kRangeKind,
  kReduceKind,
  kScatterKind
};

struct LegalForm {
  Op op;
  uint8_t levels;
  int operands_min, operands_max;
  AttributeKind attribute;
  const DTypeLaw& dtypes;
  const ShapeLaw& shapes;  // at the tensor level
};

// In the order of Op, so that a row is found by its number; spec_test checks every row.
const std::array<LegalForm, kNumOps> kLegalForms = {{
    {Op::kConst, kT | kK, 0, 0, kConst, kConstFits, kScalarShapeLaw},
    {Op::kInput, kT, 0, 0, kInput, kAny, kAnyShapeLaw},
    {Op::kIota, kT, 0, 0, kInt, kNumberSource, kIotaShapeLaw},
    {Op::kNeg, kT | kK, 1, 1, kNone, kSameNumber, kSameShapeLaw},
    {Op::kReciprocal, kT | kK, 1, 1, kNone, kSameFloat, kSameShapeLaw},
    {Op::kSqrt, kT | kK, 1, 1, kNone, kSameFloat, kSameShapeLaw},
    {Op::kExp2, kT | kK, 1, 1, kNone, kSameFloat, kSameShapeLaw},
    {Op::kLog2, kT | kK, 1, 1, kNone, kSameFloat, kSameShapeLaw},
    {Op::kSin, kT | kK, 1, 1, kNone, kSameFloat, kSameShapeLaw},
    {Op::kTrunc, kT | kK, 1, 1, kNone, kSameNumber, kSameShapeLaw},
    {Op::kNot, kT | kK, 1, 1, kNone, kSameWhole, kSameShapeLaw},
    {Op::kCast, kT | kK, 1, 1, kNone, kAny, kSameShapeLaw},
    {Op::kBitcast, kT | kK, 1, 1, kNone, kSameSize, kSameShapeLaw},
    {Op::kAdd, kT | kK, 2, 2, kNone, kSameNumber, kSameShapeLaw},
    {Op::kSub, kT | kK, 2, 2, kNone, kSameNumber, kSameShapeLaw},
    {Op::kMul, kT | kK, 2, 2, kNone, kSameNumber, kSameShapeLaw},
    {Op::kDiv, kT | kK, 2, 2, kNone, kSameFloat, kSameShapeLaw},
    {Op::kIDiv, kT | kK, 2, 2, kNone, kSameNumber, kSameShapeLaw},
    {Op::kMod, kT | kK, 2, 2, kNone, kSameNumber, kSameShapeLaw},
    {Op::kMax, kT | kK, 2, 2, kNone, kSame, kSameShapeLaw},
    {Op::kMin, kT | kK, 2, 2, kNone, kSame, kSameShapeLaw},
    {Op::kPow, kT | kK, 2, 2, kNone, kSameNumber, kSameShapeLaw},
    {Op::kCmpLt, kT | kK, 2, 2, kNone, kCompare, kSameShapeLaw},
    {Op::kCmpEq, kT | kK, 2, 2, kNone, kCompare, kSameShapeLaw},
    {Op::kCmpNe, kT | kK, 2, 2, kNone, kCompare, kSameShapeLaw},
    {Op::kAnd, kT | kK, 2, 2, kNone, kSameWhole, kSameShapeLaw},
    {Op::kOr, kT | kK, 2, 2, kNone, kSameWhole, kSameShapeLaw},
    {Op::kXor, kT | kK, 2, 2, kNone, kSameWhole, kSameShapeLaw},
    {Op::kShl, kT | kK, 2, 2, kNone, kSameInteger, kSameShapeLaw},
    {Op::kShr, kT | kK, 2, 2, kNone, kSameInteger, kSameShapeLaw},
    {Op::kWhere, kT | kK, 3, 3, kNone, kWhere, kSameShapeLaw},
    {Op::kReduceSum, kT, 1, 1, kInts, kSameNumber, kReduceShapeLaw},
    {Op::kReduceProd, kT, 1, 1, kInts, kSameNumber, kReduceShapeLaw},
    {Op::kReduceMax, kT, 1, 1, kInts, kSame, kReduceShapeLaw},
    {Op::kReshape, kT, 1, 1, kNone, kSame, kReshapeShapeLaw},
    {Op::kPermute, kT, 1, 1, kInts, kSame, kPermuteShapeLaw},
    {Op::kExpand, kT, 1, 1, kNone, kSame, kExpandShapeLaw},
    {Op::kPad, kT, 1, 1, kInts, kSame, kPadShapeLaw},
    {Op::kShrink, kT, 1, 1, kInts, kSame, kShrinkShapeLaw},
    {Op::kFlip, kT, 1, 1, kInts, kSame, kFlipShapeLaw},
    {Op::kWindow, kT, 1, 1, kInts, kSame, kWindowShapeLaw},
    {Op::kUnwindow, kT, 1, 1, kInts, kSame, kUnwindowShapeLaw},
    {Op::kGatherElements, kT, 2, 2, kInt, kGatherElements, kGatherElementsShapeLaw},
    {Op::kScatterElements, kT, 3, 3, kScatterKind, kScatterElements, kScatterElementsShapeLaw},
    {Op::kContiguous, kT, 1, 1, kNone, kSame, kSameShapeLaw},
    {Op::kDetach, kT, 1, 1, kNone, kSame, kSameShapeLaw},
    {Op::kShard, kT, 1, 1, kInts, kSame, kShardShapeLaw},
    {Op::kSend, kT, 1, 1, kInts, kSame, kSendShapeLaw},
    {Op::kMutable, kT, 1, 1, kInt, kSame, kSameShapeLaw},
    {Op::kWithDerivative, kT, 3, 3, kNone, kSameFloat, kSameShapeLaw},
    {Op::kGradient, kT, 2, 3, kNone, kGradient, kGradientShapeLaw},
    {Op::kRange, kK, 0, 0, kRangeKind, kRange, kScalarShapeLaw},
    {Op::kLoad, kK, 1, 2, kInt, kLoad, kScalarShapeLaw},
    {Op::kReduce, kK, 2, kMany, kReduceKind, kReduce, kScalarShapeLaw},
}};

absl::Status Illegal(const Node* node, std::string_view law, std::string_view what) {
  return absl::InternalError(StrCat("illegal node ", Describe(node), ": ", law, what));
}

bool AllScalar(const Node& node) {
  return node.shape().empty() &&
         std::all_of(node.operands().begin(), node.operands().end(),
                     [](const Node* operand) { return operand->shape().empty(); });
}

}  // namespace

absl::Status VerifyNode(Level level, const Node* node) {
  if (static_cast<int>(node->op()) >= kNumOps) return Illegal(node, "unknown op", "");
  const LegalForm& row = kLegalForms[static_cast<size_t>(node->op())];
  if ((row.levels & (1 << static_cast<int>(level))) == 0) {
    return Illegal(node, "not an op of the ",
                   level == Level::kTensor ? "tensor level" : "kernel level");
  }
  int count = static_cast<int>(node->operands().size());
  if (count < row.operands_min || count > row.operands_max) {
    return Illegal(node, "wrong number of operands, ", StrCat(count));
  }
  if (node->attribute().index() != row.attribute) return Illegal(node, "wrong attribute", "");
  if (SizeOf(node->dtype()) == 0) return Illegal(node, "no dtype", "");
  if (!row.dtypes.holds(*node)) return Illegal(node, "the dtypes must be: ", row.dtypes.text);
  if (level == Level::kKernel) {
    return AllScalar(*node) ? absl::OkStatus() : Illegal(node, "every value is a scalar", "");
  }
  if (!CheckedNumElements(node->shape())) return Illegal(node, "a size that no memory has", "");
  if (!row.shapes.holds(*node)) return Illegal(node, "the shape must be: ", row.shapes.text);
  return absl::OkStatus();
}

absl::Status Verify(Level level, absl::Span<const Node* const> roots) {
  for (const Node* node : TopologicalOrder(roots)) {
    absl::Status status = VerifyNode(level, node);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::optional<int64_t> CheckedNumElements(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    // The sizes other than zero must fit by themselves, since partial products are formed of them.
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, size, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

bool IsSpec(absl::Span<const int64_t> values, size_t rank) {
  std::vector<int64_t> axes;
  size_t next = 0;
  for (size_t dimension = 0; dimension < rank; ++dimension) {
    if (next == values.size()) return false;
    const int64_t count = values[next++];
    if (count < 0 || count > static_cast<int64_t>(values.size() - next)) return false;
    axes.insert(axes.end(), values.begin() + next, values.begin() + next + count);
    next += count;
  }
  std::sort(axes.begin(), axes.end());
  const bool each_once = std::adjacent_find(axes.begin(), axes.end()) == axes.end();
  const bool in_range =
      axes.empty() || (axes.front() >= 0 && axes.back() <= std::numeric_limits<int>::max());
  return next == values.size() && each_once && in_range;
}

bool FitsDType(ConstValue value, DType dtype) {
  if (IsFloat(dtype)) return true;
  if (dtype == DType::kBool) return value.bits <= 1;
  int bits = 8 * SizeOf(dtype);
  if (bits == 0) return false;
  if (bits == 64) return true;
  if (!IsSigned(dtype)) return value.bits >> bits == 0;
  int64_t limit = int64_t{1} << (bits - 1);
  return value.AsInt() >= -limit && value.AsInt() < limit;
}

}  // namespace kiln::ir
