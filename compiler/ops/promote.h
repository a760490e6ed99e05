// Which dtypes meet, and what becomes of them.
#ifndef KILN_COMPILER_OPS_PROMOTE_H_
#define KILN_COMPILER_OPS_PROMOTE_H_

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// The float8 types store numbers and take part in no arithmetic: they belong to kAny alone.
bool Belongs(ir::DType dtype, DTypeClass dtype_class);

// The Python array API's promotion, and beyond it, where the standard leaves the result open: bool
// gives way to everything; an integer meeting a float becomes that float; two float dtypes of one
// size (float16 and bfloat16, the two float8) become the next larger IEEE type. INVALID_ARGUMENT:
// uint64 with a signed integer.
absl::StatusOr<ir::DType> Promote(ir::DType a, ir::DType b);

// The signed integers of so many bytes: 1, 2, 4 or 8.
ir::DType SignedOfSize(int size);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_PROMOTE_H_
