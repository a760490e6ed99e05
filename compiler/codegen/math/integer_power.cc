// Powers of integers by repeated squaring (Knuth, The Art of Computer Programming, 4.6.3).
#include "compiler/codegen/math/helper.h"
#include "compiler/codegen/math/math.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {
namespace {

using Value = llvm::Value;

Value* Number(Value* like, int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}

// x^y, with y as an unsigned number.
Value* Squaring(llvm::IRBuilderBase& b, Value* x, Value* y) {
  llvm::BasicBlock* entry = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "square", entry->getParent());
  auto* done = llvm::BasicBlock::Create(b.getContext(), "squared", entry->getParent());
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* product = b.CreatePHI(x->getType(), 2);
  llvm::PHINode* square = b.CreatePHI(x->getType(), 2);
  llvm::PHINode* exponent = b.CreatePHI(x->getType(), 2);
  Value* odd = b.CreateICmpNE(b.CreateAnd(exponent, Number(y, 1)), Number(y, 0));
  Value* next = b.CreateSelect(odd, b.CreateMul(product, square), product);
  Value* rest = b.CreateLShr(exponent, Number(y, 1));
  product->addIncoming(Number(x, 1), entry);
  product->addIncoming(next, loop);
  square->addIncoming(x, entry);
  square->addIncoming(b.CreateMul(square, square), loop);
  exponent->addIncoming(y, entry);
  exponent->addIncoming(rest, loop);
  Value* more = b.CreateICmpNE(rest, Number(y, 0));
  // Lanes whose exponent has become 0 keep their product while others continue.
  if (x->getType()->isVectorTy()) more = b.CreateOrReduce(more);
  b.CreateCondBr(more, loop, done);
  b.SetInsertPoint(done);
  return next;
}

// A negative power of 1 or -1 depends only on the exponent's last bit; that of any other number is
// 0.
Value* Power(llvm::IRBuilderBase& b, bool is_signed, Value* x, Value* y) {
  if (!is_signed) return Squaring(b, x, y);
  Value* negative = b.CreateICmpSLT(y, Number(y, 0));
  Value* power = Squaring(b, x, b.CreateSelect(negative, b.CreateAnd(y, Number(y, 1)), y));
  Value* unit = b.CreateOr(b.CreateICmpEQ(x, Number(x, 1)), b.CreateICmpEQ(x, Number(x, -1)));
  return b.CreateSelect(b.CreateAnd(negative, b.CreateNot(unit)), Number(x, 0), power);
}

}  // namespace

llvm::Value* EmitIntegerPow(llvm::IRBuilderBase& builder, bool is_signed, llvm::Value* x,
                            llvm::Value* y) {
  return CallHelper(builder, is_signed ? "pow.signed" : "pow.unsigned", {x, y},
                    [is_signed](llvm::IRBuilderBase& b, absl::Span<Value* const> operands) {
                      return Power(b, is_signed, operands[0], operands[1]);
                    });
}

}  // namespace kiln::codegen
