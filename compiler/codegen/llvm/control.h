// Loops and branches as LLVM blocks. A register slot that one of them sets becomes a PHI where
// control flow joins.
#ifndef KILN_COMPILER_CODEGEN_LLVM_CONTROL_H_
#define KILN_COMPILER_CODEGEN_LLVM_CONTROL_H_

#include <functional>
#include <vector>

#include "compiler/codegen/llvm/expression.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

class ControlFlow {
 public:
  // The arguments must outlive this object. The builder is where the control flow begins;
  // afterwards it is where the control flow has joined again.
  ControlFlow(llvm::IRBuilder<>& builder, llvm::Function* function, ExpressionEmitter& expressions)
      : builder_(builder), function_(function), expressions_(expressions) {}

  llvm::BasicBlock* NewBlock(const char* name);

  // Emits a loop from `begin` to `end`; `inside` gets the index. `runs`: at least once. `written`:
  // the register buffers that it sets.
  void CountedLoop(llvm::Value* begin, llvm::Value* end, bool runs, const std::vector<int>& written,
                   const std::function<void(llvm::Value*)>& inside);
  void Branch(llvm::Value* condition, const std::function<void()>& then_body,
              const std::function<void()>& else_body);
  // Runs the body in the threads for which the condition holds; in all of them if it is null.
  void InSomeThreads(llvm::Value* condition, const std::function<void()>& body);

 private:
  struct Carried {
    llvm::PHINode* phi;
    size_t buffer;
    size_t slot;
  };
  llvm::BasicBlock* Arm(llvm::BasicBlock* block, const std::function<void()>& body,
                        llvm::BasicBlock* after);
  void Merge(llvm::BasicBlock* first_end, const ExpressionEmitter::Slots& first,
             llvm::BasicBlock* second_end);
  std::vector<Carried> CarrySlots(const std::vector<int>& written, llvm::BasicBlock* before);

  llvm::IRBuilder<>& builder_;
  llvm::Function* const function_;
  ExpressionEmitter& expressions_;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_CONTROL_H_
