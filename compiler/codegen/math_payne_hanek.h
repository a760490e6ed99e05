// Argument reduction for sines of large numbers. Only math*.cc may include this.
#ifndef KILN_COMPILER_CODEGEN_MATH_PAYNE_HANEK_H_
#define KILN_COMPILER_CODEGEN_MATH_PAYNE_HANEK_H_

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace kiln::codegen {

// The module's helper {double, i64} (double x), made by the first caller: x = q pi/2 + r with |r|
// <= pi/4, r within about one unit in the last place; only q's two low bits count. For 2^16 <= |x|;
// infinity and NaN give r = NaN.
//
// Payne and Hanek, "Radian reduction for trigonometric functions", 1983: of x times the bits of
// 2/pi only those matter that are neither multiples of four quadrants nor too small to be seen.
llvm::Function* PayneHanek(const llvm::Function& caller, llvm::Module& module);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_PAYNE_HANEK_H_
