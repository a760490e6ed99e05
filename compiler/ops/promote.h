// The rules for combining dtypes, and the dtype of the result.
#ifndef KILN_COMPILER_OPS_PROMOTE_H_
#define KILN_COMPILER_OPS_PROMOTE_H_

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// The float8 types only store numbers and take no part in arithmetic: they belong only to kAny.
bool Belongs(ir::DType dtype, DTypeClass dtype_class);

// The Python array API's promotion. Where the standard leaves the result open: bool with any dtype
// gives that dtype; an integer with a float gives that float; two float dtypes of one size (float16
// and bfloat16, the two float8) give the next larger IEEE type. INVALID_ARGUMENT for uint64 with a
// signed integer.
absl::StatusOr<ir::DType> Promote(ir::DType a, ir::DType b);

// Returns the signed integer dtype of that many bytes: 1, 2, 4 or 8.
ir::DType SignedOfSize(int size);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_PROMOTE_H_
