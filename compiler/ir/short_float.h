// The floating-point types of less than 32 bits.
#ifndef KILN_COMPILER_IR_SHORT_FLOAT_H_
#define KILN_COMPILER_IR_SHORT_FLOAT_H_

#include "compiler/ir/dtype.h"

namespace kiln::ir {

// float16, bfloat16 and the float8 types: arithmetic on them is done in float32 and rounded.
inline bool IsShortFloat(DType dtype) { return IsFloat(dtype) && SizeOf(dtype) < 4; }
// The float8 types. They only store numbers: no op that a client can name does arithmetic on them.
inline bool IsFloat8(DType dtype) { return IsFloat(dtype) && SizeOf(dtype) == 1; }

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_SHORT_FLOAT_H_
