#include "clients/cpp/op_row.h"

#include "absl/container/flat_hash_map.h"

namespace kiln::internal {
namespace {

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

DType WeakDType(const Number& number, DType like) {
  if (like == DType::kUnspecified || std::holds_alternative<bool>(number)) return like;
  if (std::holds_alternative<double>(number)) return FloatFor(like);
  return like == DType::kBool ? DType::kInt64 : like;
}

}  // namespace kiln::internal
