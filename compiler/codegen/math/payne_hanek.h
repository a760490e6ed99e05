// Argument reduction for sines of large numbers. Internal to codegen/math.
#ifndef KILN_COMPILER_CODEGEN_MATH_PAYNE_HANEK_H_
#define KILN_COMPILER_CODEGEN_MATH_PAYNE_HANEK_H_

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Returns the module's helper {double, i64} (double x), which the first call creates: x = q pi/2 +
// r with |r| <= pi/4, r to about one unit in the last place. Only q's two low bits are meaningful.
// For 2^16 <= |x|; infinity and NaN give r = NaN.
//
// Payne and Hanek, "Radian reduction for trigonometric functions", 1983: of x times the bits of
// 2/pi, only those are needed that are neither multiples of four quadrants nor too small to matter.
llvm::Function* PayneHanek(const llvm::Function& caller, llvm::Module& module);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_PAYNE_HANEK_H_
