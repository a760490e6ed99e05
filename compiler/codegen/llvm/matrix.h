// The steps of a loop program that a matrix unit executes (schedule/matrix/plan.h), as LLVM values.
#ifndef KILN_COMPILER_CODEGEN_LLVM_MATRIX_H_
#define KILN_COMPILER_CODEGEN_LLVM_MATRIX_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/codegen/llvm/expression.h"
#include "compiler/codegen/nvptx/matrix.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/matrix/step.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

class MatrixEmitter {
 public:
  // The arguments must outlive this object. `thread`: the number of this thread. Requires: the
  // builder is in the function's entry, where `thread` is computed.
  MatrixEmitter(llvm::IRBuilder<>& builder, ExpressionEmitter& expressions,
                kernel::ExpressionFolder& folder, llvm::Value* thread);

  // The ranges of unrolled loops, with their constants.
  using Constants = std::vector<std::pair<const ir::Node*, const ir::Node*>>;

  // `group` and `member`: the ranges of the last two loops of threads. Returns false if the unit
  // cannot load the factors from where they are; nothing was emitted then.
  bool Emit(const schedule::MatrixStep& step, const ir::Node* group, const ir::Node* member,
            const Constants& constants);

  // Forgets loaded factors, since shared memory may have changed.
  void Forget() { fragments_.clear(); }

 private:
  // How a factor's 16-bit elements are arranged in memory.
  enum class Lines { kAlongTerms, kAcrossTerms, kNeither };
  using Values = std::vector<std::pair<const ir::Node*, const ir::Node*>>;

  // `pair`: null, or the range of which `along`, of length 2, is the inner part.
  Lines LinesOf(const ir::Node* index, const ir::Node* along, const ir::Node* pair,
                const ir::Node* terms) const;
  const ir::Node* Replace(const ir::Node* node, const Constants& constants, const Values& values);
  MatrixA LoadRows(const schedule::MatrixStep& step, const ir::Node* group, const ir::Node* member,
                   const Constants& constants);
  MatrixB LoadColumns(const schedule::MatrixStep& step, const ir::Node* group,
                      const ir::Node* member, const Constants& constants);

  llvm::IRBuilder<>& builder_;
  ExpressionEmitter& expressions_;
  kernel::ExpressionFolder& folder_;
  // The number of the thread within its subgroup is 16 * half + 8 * pair + eighth.
  const ir::Node* eighth_;
  const ir::Node* pair_;
  const ir::Node* half_;
  // The factors that a block has already loaded, by their load: rows' and columns'.
  llvm::BasicBlock* block_ = nullptr;
  absl::flat_hash_map<std::pair<const ir::Node*, bool>, MatrixA> fragments_;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_MATRIX_H_
