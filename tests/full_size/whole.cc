#include "tests/full_size/whole.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/dtype.h"

namespace kiln::full_size {
namespace {

using ir::DType;
using ir::Op;

int SignificandBits(DType dtype) { return ir::FormatOf(dtype).mantissa_bits + 1; }

Size SizeOfConstant(const ir::Node* node) {
  const double value = node->attr<ir::ConstValue>().AsDouble();
  return {value == std::trunc(value), std::abs(value)};
}

Size LargerOf(const Size& a, const Size& b) {
  return {a.whole && b.whole, std::max(a.magnitude, b.magnitude)};
}

}  // namespace

double RoundingTo(DType dtype) { return std::ldexp(1, -SignificandBits(dtype)); }

bool HoldsWhole(double magnitude, DType dtype) {
  return magnitude <= std::ldexp(1, SignificandBits(dtype));
}

Size SizeOfFloat(const ir::Node* node, absl::Span<const Size> operands) {
  Size size;
  switch (node->op()) {
    case Op::kMax:
    case Op::kMin:
      return LargerOf(operands[0], operands[1]);
    case Op::kWhere:
      return LargerOf(operands[1], operands[2]);
    case Op::kNeg:
    case Op::kTrunc:
      return operands[0];
    case Op::kConst:
      size = SizeOfConstant(node);
      break;
    case Op::kAdd:
    case Op::kSub:
      size = {operands[0].whole && operands[1].whole,
              operands[0].magnitude + operands[1].magnitude};
      break;
    case Op::kMul:
      size = {operands[0].whole && operands[1].whole,
              operands[0].magnitude * operands[1].magnitude};
      break;
    case Op::kCast:
      size = {operands[0].whole, operands[0].magnitude * (1 + 2 * RoundingTo(node->dtype()))};
      // Rounding to a short float keeps a whole number whole.
      if (ir::IsShortFloat(node->dtype())) return size;
      break;
    default:
      return size;
  }
  size.whole &= HoldsWhole(size.magnitude, node->dtype());
  return size;
}

}  // namespace kiln::full_size
