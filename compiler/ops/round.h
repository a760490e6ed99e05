// The value that a tensor of some dtype stores for a number. Shared by constants, casts and the
// reference interpreter.
#ifndef KILN_COMPILER_OPS_ROUND_H_
#define KILN_COMPILER_OPS_ROUND_H_

#include <cstdint>

#include "compiler/ir/dtype.h"

namespace kiln::ops {

// Returns the nearest value of a float dtype, ties to even. float16 and float32 overflow to
// infinity, float8 E4M3 to NaN (it has no infinity; OCP 8-bit floating point specification, 2023,
// without saturation).
double RoundToFloat(ir::DType dtype, double value);

// Returns the float dtype's value nearest to an integer, rounded once; the integer's bits are
// unsigned if it comes from uint64.
double IntegerToFloat(ir::DType dtype, int64_t value, bool is_uint64);

// Returns the low bits of a two's complement number, sign- or zero-extended to 64 bits; for bool,
// whether it is not zero.
int64_t WrapToInteger(ir::DType dtype, int64_t value);

// Converts a float to an integer: truncates the fraction; NaN gives 0; values out of range
// saturate. For bool, returns whether it is not zero (NaN is not).
int64_t FloatToInteger(ir::DType dtype, double value);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_ROUND_H_
