#include "compiler/codegen/llvm/control.h"

namespace kiln::codegen {

using llvm::BasicBlock;
using llvm::PHINode;
using llvm::Value;

BasicBlock* ControlFlow::NewBlock(const char* name) {
  return BasicBlock::Create(builder_.getContext(), name, function_);
}

void ControlFlow::CountedLoop(Value* begin, Value* end, bool runs, const std::vector<int>& written,
                              const std::function<void(Value*)>& inside) {
  // The test is at the end, so that an iteration has one branch. A loop that may be empty is tested
  // before as well.
  BasicBlock* before = builder_.GetInsertBlock();
  BasicBlock* body = NewBlock("loop");
  BasicBlock* after = NewBlock("done");
  if (runs) {
    builder_.CreateBr(body);
  } else {
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), body, after);
  }
  const ExpressionEmitter::Slots slots_before = expressions_.slots();
  expressions_.OpenScope(/*conditional=*/!runs);
  builder_.SetInsertPoint(body);
  PHINode* index = builder_.CreatePHI(builder_.getInt64Ty(), 2);
  index->addIncoming(begin, before);
  std::vector<Carried> carried = CarrySlots(written, before);
  inside(index);
  Value* next = builder_.CreateAdd(index, builder_.getInt64(1), "", true, true);
  BasicBlock* latch = builder_.GetInsertBlock();
  index->addIncoming(next, latch);
  for (const Carried& one : carried) {
    one.phi->addIncoming(expressions_.slots()[one.buffer][one.slot], latch);
  }
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), body, after);
  expressions_.CloseScope();
  builder_.SetInsertPoint(after);
  if (!runs) Merge(before, slots_before, latch);
}

void ControlFlow::Branch(Value* condition, const std::function<void()>& then_body,
                         const std::function<void()>& else_body) {
  BasicBlock* then_block = NewBlock("then");
  BasicBlock* else_block = NewBlock("else");
  BasicBlock* after = NewBlock("after");
  builder_.CreateCondBr(condition, then_block, else_block);
  const ExpressionEmitter::Slots before = expressions_.slots();
  expressions_.OpenScope(/*conditional=*/true);
  BasicBlock* then_end = Arm(then_block, then_body, after);
  expressions_.CloseScope();
  const ExpressionEmitter::Slots after_then = expressions_.slots();
  // The other arm begins with the slots from before the branch.
  expressions_.slots() = before;
  // OpenScope assumes that the scope is entered from the builder's block.
  builder_.SetInsertPoint(then_block->getSinglePredecessor());
  expressions_.OpenScope(/*conditional=*/true);
  BasicBlock* else_end = Arm(else_block, else_body, after);
  expressions_.CloseScope();
  builder_.SetInsertPoint(after);
  Merge(then_end, after_then, else_end);
}

void ControlFlow::InSomeThreads(Value* condition, const std::function<void()>& body) {
  BasicBlock* before = builder_.GetInsertBlock();
  BasicBlock* inside = NewBlock("threads");
  BasicBlock* after = nullptr;
  if (condition == nullptr) {
    builder_.CreateBr(inside);
  } else {
    after = NewBlock("after");
    builder_.CreateCondBr(condition, inside, after);
  }
  const ExpressionEmitter::Slots slots_before = expressions_.slots();
  expressions_.OpenScope(/*conditional=*/condition != nullptr);
  builder_.SetInsertPoint(inside);
  body();
  expressions_.CloseScope();
  if (condition == nullptr) return;
  BasicBlock* end = builder_.GetInsertBlock();
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
  Merge(before, slots_before, end);
}

BasicBlock* ControlFlow::Arm(BasicBlock* block, const std::function<void()>& body,
                             BasicBlock* after) {
  builder_.SetInsertPoint(block);
  body();
  BasicBlock* end = builder_.GetInsertBlock();
  builder_.CreateBr(after);
  return end;
}

// Slots that the two arms set differently become PHIs. The emitter's slots are those of the second
// arm.
void ControlFlow::Merge(BasicBlock* first_end, const ExpressionEmitter::Slots& first,
                        BasicBlock* second_end) {
  ExpressionEmitter::Slots& slots = expressions_.slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    for (size_t j = 0; j < slots[i].size(); ++j) {
      Value* a = first[i][j];
      Value* b = slots[i][j];
      if (a == b) continue;
      // A slot that only one arm sets is read only after that arm was taken.
      if (a == nullptr) a = llvm::PoisonValue::get(b->getType());
      if (b == nullptr) b = llvm::PoisonValue::get(a->getType());
      PHINode* phi = builder_.CreatePHI(a->getType(), 2);
      phi->addIncoming(a, first_end);
      phi->addIncoming(b, second_end);
      slots[i][j] = phi;
    }
  }
}

std::vector<ControlFlow::Carried> ControlFlow::CarrySlots(const std::vector<int>& written,
                                                          BasicBlock* before) {
  std::vector<Carried> carried;
  for (int buffer : written) {
    std::vector<Value*>& slots = expressions_.slots()[buffer];
    for (size_t i = 0; i < slots.size(); ++i) {
      // Not set before the loop, so there is no value to carry in.
      if (slots[i] == nullptr) continue;
      PHINode* phi = builder_.CreatePHI(slots[i]->getType(), 2);
      phi->addIncoming(slots[i], before);
      slots[i] = phi;
      carried.push_back({phi, static_cast<size_t>(buffer), i});
    }
  }
  return carried;
}

}  // namespace kiln::codegen
