// Functions of one instruction, or nearly.
#include "compiler/codegen/math/math.h"

#include "compiler/codegen/math/lanes.h"

namespace kiln::codegen {

llvm::Value* EmitSqrt(llvm::IRBuilderBase& builder, llvm::Value* x) {
  // While it lives, `lanes` clears the builder's fast-math flags, even where it is not used.
  Lanes lanes(builder, x->getType());
  return builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
}

llvm::Value* EmitReciprocal(llvm::IRBuilderBase& builder, llvm::Value* x) {
  Lanes lanes(builder, x->getType());
  return lanes.Div(lanes.F(1), x);
}

llvm::Value* EmitTrunc(llvm::IRBuilderBase& builder, llvm::Value* x) {
  return Lanes(builder, x->getType()).Trunc(x);
}

// x86's max returns its second operand if one is NaN, so `x > y ? x : y` is right for y = NaN, and
// the outer select handles x = NaN. That costs a compare and a masked move in addition to the max.
llvm::Value* EmitMax(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y) {
  Lanes lanes(builder, x->getType());
  return lanes.Select(builder.CreateFCmpUNO(x, x), x, lanes.Select(lanes.Greater(x, y), x, y));
}

llvm::Value* EmitMin(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y) {
  Lanes lanes(builder, x->getType());
  return lanes.Select(builder.CreateFCmpUNO(x, x), x, lanes.Select(lanes.Less(x, y), x, y));
}

}  // namespace kiln::codegen
