#include "clients/cpp/op_row.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace kiln::internal {
namespace {

bool IsFloat(DType dtype) { return dtype >= DType::kFloat16; }
bool IsSigned(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kInt64; }

DType PromoteFloats(DType a, DType b) {
  if (SizeOf(a) != SizeOf(b)) return SizeOf(a) > SizeOf(b) ? a : b;
  // The smallest float that holds both: float16 for the two kinds of float8, float32 for float16
  // and bfloat16.
  return SizeOf(a) == 1 ? DType::kFloat16 : DType::kFloat32;
}

DType PromoteIntegers(DType a, DType b) {
  if (IsSigned(a) == IsSigned(b)) return SizeOf(a) > SizeOf(b) ? a : b;
  // A signed integer that holds all values of both; with uint64 there is none.
  const int size = std::max(SizeOf(IsSigned(a) ? a : b), 2 * SizeOf(IsSigned(a) ? b : a));
  for (const DType dtype : {DType::kInt16, DType::kInt32, DType::kInt64}) {
    if (SizeOf(dtype) == size) return dtype;
  }
  return DType::kUnspecified;
}

DType PromoteAll(const OpRow& row, absl::Span<const Value> operands) {
  DType promoted = DType::kBool;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (Promotes(row, i)) promoted = Promote(promoted, operands[i].dtype());
  }
  return promoted;
}

DType FloatFor(DType dtype) {
  return dtype == DType::kUnspecified || IsFloat(dtype) ? dtype : DType::kFloat32;
}

DType OperandDType(absl::Span<const Value> operands, size_t number) {
  return number < operands.size() ? operands[number].dtype() : DType::kUnspecified;
}

}  // namespace

const OpRow* FindRow(std::string_view op) {
  static const auto& rows = *[] {
    auto* by_name = new absl::flat_hash_map<std::string_view, const OpRow*>;
    for (const OpRow& row : OpRows()) by_name->emplace(row.name, &row);
    return by_name;
  }();
  const auto found = rows.find(op);
  return found == rows.end() ? nullptr : found->second;
}

bool Promotes(const OpRow& row, size_t operand) {
  if (row.special_operand < 0) return true;
  const auto special = static_cast<size_t>(row.special_operand);
  // If the special operand may be repeated ("*"), operands after it are repetitions of it.
  return operand < special || (operand > special && row.operands.back() != '*');
}

DType ResultDType(const OpRow& row, absl::Span<const Value> operands, DType declared) {
  switch (row.dtype_rule) {
    case DTypeRule::kAttribute:
      return declared;
    case DTypeRule::kSame:
      return OperandDType(operands, 0);
    case DTypeRule::kSecond:
      return OperandDType(operands, 1);
    case DTypeRule::kPromote:
      return PromoteAll(row, operands);
    case DTypeRule::kPromoteFloat:
      return FloatFor(PromoteAll(row, operands));
    case DTypeRule::kBool:
      return DType::kBool;
    case DTypeRule::kInt64:
      return DType::kInt64;
    case DTypeRule::kInt32:
      return DType::kInt32;
    case DTypeRule::kUint32:
      return DType::kUInt32;
    case DTypeRule::kFloat32:
      return DType::kFloat32;
  }
  return DType::kUnspecified;
}

DType Promote(DType a, DType b) {
  if (a == DType::kUnspecified || b == DType::kUnspecified) return DType::kUnspecified;
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (IsFloat(a) && IsFloat(b)) return PromoteFloats(a, b);
  if (IsFloat(a) || IsFloat(b)) return IsFloat(a) ? a : b;
  return PromoteIntegers(a, b);
}

DType WeakDType(const Number& number, DType like) {
  if (like == DType::kUnspecified || std::holds_alternative<bool>(number)) return like;
  if (std::holds_alternative<double>(number)) return FloatFor(like);
  return like == DType::kBool ? DType::kInt64 : like;
}

}  // namespace kiln::internal
