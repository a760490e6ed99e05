#include "compiler/kernel/index_value.h"

#include "compiler/kernel/index_sum.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

std::optional<int64_t> ValueAt(const Node* node, const IndexPoint& point) {
  if (node->op() == Op::kRange) {
    const auto found = point.find(node);
    return found == point.end() ? std::nullopt : std::optional<int64_t>(found->second);
  }
  if (node->op() == Op::kConst) return node->attr<ir::ConstValue>().AsInt();
  if (node->operands().size() != 2) return std::nullopt;
  const std::optional<int64_t> a = ValueAt(node->operand(0), point);
  const std::optional<int64_t> b = ValueAt(node->operand(1), point);
  if (!a || !b) return std::nullopt;
  switch (node->op()) {
    case Op::kAdd:
      return WrappingAdd(*a, *b);
    case Op::kMul:
      return WrappingMul(*a, *b);
    case Op::kIDiv:
    case Op::kMod: {
      if (*b <= 0) return std::nullopt;
      const int64_t quotient = FloorDiv(*a, *b);
      return node->op() == Op::kIDiv ? quotient : *a - quotient * *b;
    }
    case Op::kCmpLt:
      return *a < *b;
    case Op::kCmpEq:
      return *a == *b;
    case Op::kCmpNe:
      return *a != *b;
    case Op::kAnd:
      return *a & *b;
    case Op::kOr:
      return *a | *b;
    default:
      return std::nullopt;
  }
}

}  // namespace kiln::kernel
