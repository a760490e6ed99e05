// 2^x for an argument in more precision than the type has, for pow. Internal to codegen/math.
#ifndef KILN_COMPILER_CODEGEN_MATH_EXPONENTIAL_H_
#define KILN_COMPILER_CODEGEN_MATH_EXPONENTIAL_H_

#include "compiler/codegen/math/lanes.h"

namespace kiln::codegen {

// 2^(x.high + x.low) for doubles, to 0.6 units in the last place. x.high may be infinite or NaN;
// x.low must be finite.
llvm::Value* EmitPreciseExp2(const Lanes& lanes, DoubleDouble x);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_EXPONENTIAL_H_
