#include "compiler/ops/rules/infer.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/promote.h"
#include "compiler/ops/rules/rule_run.h"
#include "compiler/ops/rules/shape_error.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Shape;

absl::Status NoArithmetic(const OpDef& op, DType dtype) {
  return absl::InvalidArgumentError(StrCat("\"", op.name, "\" of ", ir::Name(dtype),
                                           ", which only stores numbers; cast it to float16, ",
                                           "bfloat16 or float32 first"));
}

absl::Status CheckClass(const OpDef& op, size_t operand, DType dtype) {
  const DTypeClass wanted = IsSpecial(op, operand) ? op.special_class : op.operand_class;
  if (Belongs(dtype, wanted)) return absl::OkStatus();
  // A float8 is a float, so "must be float" would be confusing.
  if (ir::IsFloat8(dtype) && Belongs(DType::kFloat32, wanted)) return NoArithmetic(op, dtype);
  return absl::InvalidArgumentError(StrCat("operand ", operand, " of \"", op.name, "\" has dtype ",
                                           ir::Name(dtype), "; it must be ", Name(wanted)));
}

absl::StatusOr<DType> PromoteAll(const OpDef& op, absl::Span<const DType> operands) {
  // Promotion's neutral element: bool with any dtype gives that dtype.
  DType promoted = DType::kBool;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (IsSpecial(op, i)) continue;
    const auto next = Promote(promoted, operands[i]);
    if (!next.ok()) return next.status();
    promoted = *next;
  }
  return promoted;
}

std::string JoinNames(absl::Span<const std::string_view> names) {
  std::string joined;
  for (const std::string_view name : names) StrAppend(&joined, joined.empty() ? "" : ", ", name);
  return joined;
}

DType FloatFor(DType dtype) { return ir::IsFloat(dtype) ? dtype : DType::kFloat32; }

absl::StatusOr<DType> ByRule(const OpDef& op, absl::Span<const DType> operands, DType declared) {
  switch (op.dtype_rule) {
    case DTypeRule::kAttribute:
      if (declared != DType::kInvalid) return declared;
      return absl::InvalidArgumentError(StrCat("\"", op.name, "\" needs a dtype"));
    case DTypeRule::kSame:
      return operands[0];
    case DTypeRule::kSecond:
      return operands[1];
    case DTypeRule::kPromote:
      return PromoteAll(op, operands);
    case DTypeRule::kPromoteFloat: {
      const auto promoted = PromoteAll(op, operands);
      if (!promoted.ok()) return promoted.status();
      if (ir::IsFloat8(*promoted)) return NoArithmetic(op, *promoted);
      return FloatFor(*promoted);
    }
    // The result is always bool, but the operands must have a common dtype.
    case DTypeRule::kBool: {
      const auto promoted = PromoteAll(op, operands);
      if (!promoted.ok()) return promoted.status();
      return DType::kBool;
    }
    case DTypeRule::kInt64: {
      const auto promoted = PromoteAll(op, operands);
      if (!promoted.ok()) return promoted.status();
      return DType::kInt64;
    }
    case DTypeRule::kInt32:
      return DType::kInt32;
    case DTypeRule::kUInt32:
      return DType::kUInt32;
    case DTypeRule::kFloat32:
      return DType::kFloat32;
  }
  return absl::InternalError("unknown dtype rule");
}

}  // namespace

std::string ToString(absl::Span<const int64_t> shape) {
  return StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

absl::Status CheckShape(absl::Span<const int64_t> shape) {
  if (shape.size() > kRankMax) {
    return ShapeError("a shape with ", shape.size(), " dimensions; at most ", kRankMax,
                      " are allowed");
  }
  // Zero sizes are ignored in the product, so that an empty dimension does not make an illegal
  // shape legal.
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 0) return ShapeError("the shape ", ToString(shape), " has a negative size");
    if (__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) ||
        elements > kElementsMax) {
      return ShapeError("the shape ", ToString(shape),
                        " has too many elements; it can have at most ", kElementsMax);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOperandCount(const OpDef& op, size_t count) {
  size_t operands_min = 0;
  size_t operands_max = 0;
  for (const std::string_view name : op.operands) {
    if (name.back() != '?') ++operands_min;
    operands_max = name.back() == '*' ? SIZE_MAX : operands_max + 1;
  }
  if (count >= operands_min && count <= operands_max) return absl::OkStatus();
  const std::string wanted = operands_min == operands_max ? StrCat(operands_min)
                             : operands_max == SIZE_MAX
                                 ? StrCat("at least ", operands_min)
                                 : StrCat(operands_min, " to ", operands_max);
  return absl::InvalidArgumentError(StrCat("\"", op.name, "\" has ", count, " operands; it takes ",
                                           wanted, op.operands.empty() ? "" : ": ",
                                           JoinNames(op.operands)));
}

absl::StatusOr<Shape> InferShape(const OpDef& op, absl::Span<const Shape> operands,
                                 const Attributes& attributes) {
  const absl::Status count = CheckOperandCount(op, operands.size());
  if (!count.ok()) return count;
  const RuleQuery query{op, operands, attributes};
  absl::StatusOr<Shape> result = RuleRun(*op.programs[0], query).Run();
  if (!result.ok()) return result;
  // Sizes that are legal one by one may have too large a product.
  const absl::Status legal = CheckShape(*result);
  if (!legal.ok()) return legal;
  return result;
}

absl::Status CheckConstraints(const RuleQuery& query) {
  // Program 0 is the shape rule.
  for (size_t i = 1; i < query.op.programs.size(); ++i) {
    const absl::Status holds = RuleRun(*query.op.programs[i], query).Run().status();
    if (!holds.ok()) return holds;
  }
  return absl::OkStatus();
}

absl::StatusOr<DType> InferDType(const OpDef& op, absl::Span<const DType> operands,
                                 DType declared) {
  const absl::Status count = CheckOperandCount(op, operands.size());
  if (!count.ok()) return count;
  for (size_t i = 0; i < operands.size(); ++i) {
    const absl::Status fits = CheckClass(op, i, operands[i]);
    if (!fits.ok()) return fits;
  }
  const auto result = ByRule(op, operands, declared);
  // Clients infer dtypes by the same rules, so a different declaration is a mistake.
  if (!result.ok() || declared == DType::kInvalid || declared == *result) return result;
  return absl::InvalidArgumentError(StrCat("\"", op.name, "\" gives ", ir::Name(*result),
                                           " here, not the declared ", ir::Name(declared)));
}

DType OperandDType(const OpDef& op, absl::Span<const DType> operands) {
  switch (op.dtype_rule) {
    case DTypeRule::kPromote:
    case DTypeRule::kBool:
      return PromoteAll(op, operands).value_or(DType::kInvalid);
    case DTypeRule::kPromoteFloat:
      return FloatFor(PromoteAll(op, operands).value_or(DType::kFloat32));
    default:
      return DType::kInvalid;
  }
}

absl::StatusOr<Shape> BroadcastShapes(absl::Span<const Shape> shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    const Shape before = result;
    // Missing leading dimensions count as 1.
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    const size_t skipped = result.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& size = result[skipped + i];
      if (size == shape[i] || shape[i] == 1) continue;
      if (size != 1) {
        return ShapeError(
            "shapes ", ToString(before), " and ", ToString(shape),
            " do not broadcast: from the last dimension on, sizes must be equal or 1");
      }
      size = shape[i];
    }
  }
  return result;
}

absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, size_t rank) {
  const int64_t signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    return ShapeError("axis ", axis, " of a tensor with ", rank, " dimensions; it must be in [",
                      -signed_rank, ", ", signed_rank, ")");
  }
  return axis < 0 ? axis + signed_rank : axis;
}

absl::StatusOr<std::vector<int64_t>> NormalizeAxes(absl::Span<const int64_t> axes, size_t rank) {
  std::vector<int64_t> result;
  if (axes.empty()) {
    for (size_t i = 0; i < rank; ++i) result.push_back(static_cast<int64_t>(i));
    return result;
  }
  for (const int64_t axis : axes) {
    const auto normal = NormalizeAxis(axis, rank);
    if (!normal.ok()) return normal.status();
    result.push_back(*normal);
  }
  std::sort(result.begin(), result.end());
  const auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end()) return ShapeError("axis ", *twice, " is named twice");
  return result;
}

}  // namespace kiln::ops
