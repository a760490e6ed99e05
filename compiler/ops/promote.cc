#include "compiler/ops/promote.h"

#include <algorithm>

#include "compiler/ir/dtype.h"
#include "compiler/ir/str_cat.h"

namespace kiln::ops {
namespace {

using ir::DType;

DType PromoteFloats(DType a, DType b) {
  const int size_a = ir::SizeOf(a);
  const int size_b = ir::SizeOf(b);
  if (size_a != size_b) return size_a > size_b ? a : b;
  // Neither holds the other: one has more digits, the other more range.
  return size_a == 1 ? DType::kFloat16 : DType::kFloat32;
}

absl::StatusOr<DType> PromoteIntegers(DType a, DType b) {
  if (ir::IsSigned(a) == ir::IsSigned(b)) return ir::SizeOf(a) > ir::SizeOf(b) ? a : b;
  // The smallest signed dtype that holds both: an unsigned one needs twice its size.
  const DType signed_one = ir::IsSigned(a) ? a : b;
  const DType unsigned_one = ir::IsSigned(a) ? b : a;
  if (unsigned_one == DType::kUInt64) {
    return absl::InvalidArgumentError(
        StrCat("no integer holds both ", ir::Name(a), " and ", ir::Name(b), "; cast one of them"));
  }
  return SignedOfSize(std::max(ir::SizeOf(signed_one), 2 * ir::SizeOf(unsigned_one)));
}

}  // namespace

bool Belongs(DType dtype, DTypeClass dtype_class) {
  switch (dtype_class) {
    case DTypeClass::kAny:
      return dtype != DType::kInvalid;
    case DTypeClass::kNumeric:
      return (ir::IsFloat(dtype) && !ir::IsFloat8(dtype)) || ir::IsInteger(dtype);
    case DTypeClass::kFloat:
      return ir::IsFloat(dtype) && !ir::IsFloat8(dtype);
    case DTypeClass::kInteger:
      return ir::IsInteger(dtype);
    case DTypeClass::kIntegerOrBool:
      return ir::IsInteger(dtype) || dtype == DType::kBool;
    case DTypeClass::kBool:
      return dtype == DType::kBool;
    case DTypeClass::kFloatOrBool:
      return Belongs(dtype, DTypeClass::kFloat) || dtype == DType::kBool;
    case DTypeClass::kUInt32:
      return dtype == DType::kUInt32;
  }
  return false;
}

absl::StatusOr<DType> Promote(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  const bool float_a = ir::IsFloat(a);
  const bool float_b = ir::IsFloat(b);
  if (float_a && float_b) return PromoteFloats(a, b);
  if (float_a != float_b) return float_a ? a : b;
  return PromoteIntegers(a, b);
}

DType SignedOfSize(int size) {
  switch (size) {
    case 1:
      return DType::kInt8;
    case 2:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    default:
      return DType::kInt64;
  }
}

}  // namespace kiln::ops
