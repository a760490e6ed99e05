// Logarithms in more precision than the type has, for pow. Internal to codegen/math.
#ifndef KILN_COMPILER_CODEGEN_MATH_LOGARITHM_H_
#define KILN_COMPILER_CODEGEN_MATH_LOGARITHM_H_

#include "compiler/codegen/math/lanes.h"

namespace kiln::codegen {

// log2(x) for doubles 0 < x < infinity, to about 2^-66 of its value; the result for other arguments
// is unspecified.
DoubleDouble EmitPreciseLog2(const Lanes& lanes, llvm::Value* x);
// log2(x) for normal doubles, to about 2^-45 of its value, and correctly signed infinities for 0
// and infinity.
llvm::Value* EmitQuickLog2(const Lanes& lanes, llvm::Value* x);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_LOGARITHM_H_
