#include "compiler/ops/composites/classes.h"

namespace kiln::ops {

using ir::DType;

bool CanBe(DType dtype, int64_t value) {
  const bool is_unsigned = !ir::IsSigned(dtype);
  if (is_unsigned)
    return value >= 0 && (ir::SizeOf(dtype) > 4 || value >> (8 * ir::SizeOf(dtype)) == 0);
  if (ir::SizeOf(dtype) == 8) return true;
  const int64_t end = int64_t{1} << (8 * ir::SizeOf(dtype) - 1);
  return value >= -end && value < end;
}

const ir::Node* IsClass(Builder& b, const ir::Node* labels, int64_t classes, int64_t axis) {
  // In a dtype that is too narrow the class numbers would wrap: an int8 label of 1 would match
  // class 257 too. int64 holds every label whose own dtype is too narrow.
  const DType dtype = CanBe(labels->dtype(), classes - 1) ? labels->dtype() : DType::kInt64;
  ir::Shape shape(labels->shape().size() + 1, 1);
  shape[axis] = classes;
  return b.Equal(b.Iota(dtype, shape, axis), b.Unsqueeze(b.Cast(labels, dtype), axis));
}

}  // namespace kiln::ops
