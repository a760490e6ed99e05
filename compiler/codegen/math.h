// Elementary functions as LLVM IR, since generated code calls no library: float or double, scalar
// or a vector of any width, the same numbers at every width. Zeros, infinities, NaN and denormals
// (arguments and results) are as IEEE 754-2019 section 9.2 and C's annex F have them; which NaN
// comes out is not specified.
//
// They use of the processor what instructions.h allows the builder's function; where it has no
// fused multiply-add, another way gives results that differ in the last place. Fast-math flags of
// the builder are ignored. The functions only append to the builder's current block, except that
// some add internal helper functions to the module.
//
// Largest error that math_test sees, in units in the last place of the result:
//
//            exp2  exp   log2  log   sin   cos   pow
//   float    0.80  0.98  0.98  0.84  1.54  1.53  0.50
//   double   0.88  0.96  0.50  0.50  1.53  1.50  0.81
//
// EmitModulo is exact but for one rounding. What compiler/ops composes of these, as
// tests/numerics/accuracy_test sees it in float: tanh 1.19, erf 1.62, sigmoid 2.30, tan 2.74, rsqrt
// 1.46.
#ifndef KILN_COMPILER_CODEGEN_MATH_H_
#define KILN_COMPILER_CODEGEN_MATH_H_

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace kiln::codegen {

llvm::Value* EmitExp2(llvm::IRBuilderBase& builder, llvm::Value* x);
// e^x, which exp2(x * log2(e)) is not for large |x|: that product's rounding error grows with |x|.
llvm::Value* EmitExp(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitLog2(llvm::IRBuilderBase& builder, llvm::Value* x);
// The natural logarithm.
llvm::Value* EmitLog(llvm::IRBuilderBase& builder, llvm::Value* x);
// Of any argument, however large (Payne and Hanek 1983). A call of a helper function.
llvm::Value* EmitSin(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitCos(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitPow(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);

// x - floor(x / y) y, of which the sign is y's (a zero's, too); NaN for zero y and infinite x.
// Correctly rounded. A call of a helper function.
llvm::Value* EmitModulo(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);
// Of integers, modulo 2^bits; for a negative exponent the quotient 1 / x^-y without its fraction,
// so 0 unless x is 1 or -1. A call of a helper function.
llvm::Value* EmitIntegerPow(llvm::IRBuilderBase& builder, bool is_signed, llvm::Value* x,
                            llvm::Value* y);

// Correctly rounded.
llvm::Value* EmitSqrt(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitReciprocal(llvm::IRBuilderBase& builder, llvm::Value* x);
// Towards zero.
llvm::Value* EmitTrunc(llvm::IRBuilderBase& builder, llvm::Value* x);
// NaN if either is NaN, as the Python array API's maximum and minimum; of zeros of both signs,
// either.
llvm::Value* EmitMax(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);
llvm::Value* EmitMin(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_H_
