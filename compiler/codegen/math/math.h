// Elementary functions as LLVM IR, since generated code calls no library: float or double, scalar
// or a vector of any width, with the same results at every width. Zeros, infinities, NaN and
// denormals (arguments and results) follow IEEE 754-2019 section 9.2 and C's annex F; which NaN is
// returned is not specified.
//
// The functions use the processor's instructions that instructions.h allows for the builder's
// function. Without fused multiply-add, other code gives results that differ in the last place.
// Fast-math flags of the builder are ignored. The functions only append to the builder's current
// block, except that some add internal helper functions to the module.
//
// Largest errors that math_test finds, in units in the last place of the result:
//
//            exp2  exp   log2  log   sin   cos   pow
//   float    0.80  0.98  0.98  0.84  1.54  1.53  0.50
//   double   0.88  0.96  0.50  0.50  1.53  1.50  0.81
//
// EmitModulo is exact up to one rounding. Functions that compiler/ops composes of these have these
// errors in float, found by tests/numerics/compiled/accuracy_test: tanh 1.19, erf 1.62,
// sigmoid 2.30, tan 2.74, rsqrt 1.46.
#ifndef KILN_COMPILER_CODEGEN_MATH_MATH_H_
#define KILN_COMPILER_CODEGEN_MATH_MATH_H_

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace kiln::codegen {

llvm::Value* EmitExp2(llvm::IRBuilderBase& builder, llvm::Value* x);
// e^x. exp2(x * log2(e)) is not accurate for large |x|: that product's rounding error grows with
// |x|.
llvm::Value* EmitExp(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitLog2(llvm::IRBuilderBase& builder, llvm::Value* x);
// The natural logarithm.
llvm::Value* EmitLog(llvm::IRBuilderBase& builder, llvm::Value* x);
// Correct for arguments of any size (Payne and Hanek 1983). Calls a helper function.
llvm::Value* EmitSin(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitCos(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitPow(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);

// x - floor(x / y) y, with the sign of y (a zero as well); NaN for zero y and infinite x. Correctly
// rounded. Calls a helper function.
llvm::Value* EmitModulo(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);
// The power of integers, modulo 2^bits. For a negative exponent, the integer part of 1 / x^-y, so 0
// unless x is 1 or -1. Calls a helper function.
llvm::Value* EmitIntegerPow(llvm::IRBuilderBase& builder, bool is_signed, llvm::Value* x,
                            llvm::Value* y);

// Correctly rounded.
llvm::Value* EmitSqrt(llvm::IRBuilderBase& builder, llvm::Value* x);
llvm::Value* EmitReciprocal(llvm::IRBuilderBase& builder, llvm::Value* x);
// Rounds towards zero.
llvm::Value* EmitTrunc(llvm::IRBuilderBase& builder, llvm::Value* x);
// NaN if either is NaN, like the Python array API's maximum and minimum; either one of zeros with
// different signs.
llvm::Value* EmitMax(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);
llvm::Value* EmitMin(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_MATH_H_
