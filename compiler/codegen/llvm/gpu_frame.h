// The frame of a GPU kernel that takes a slot table: one thread of a grid of blocks
// (drivers/interface/kernel_image.h). Thread numbers, shared memory and barriers differ by
// architecture.
#ifndef KILN_COMPILER_CODEGEN_LLVM_GPU_FRAME_H_
#define KILN_COMPILER_CODEGEN_LLVM_GPU_FRAME_H_

#include <cstdint>
#include <string>

#include "compiler/codegen/llvm/frame.h"
#include "drivers/interface/target.h"

namespace kiln::codegen {

// The parameters are the slot table, a number for each argument, and the first grid point of the
// launch. A block or a thread runs a task; in the second case, the thread with the task's number in
// the grid.
class GpuFrame : public Frame {
 public:
  // `block_size`: the threads of a block; `tasks_per_block`: 1 or block_size. `global`: the address
  // space of arguments.
  GpuFrame(int64_t block_size, int64_t tasks_per_block, unsigned global)
      : block_size_(block_size), tasks_per_block_(tasks_per_block), global_(global) {}

  llvm::Value* Argument(llvm::IRBuilder<>& builder, int buffer) const override;
  void RunTasks(llvm::IRBuilder<>& builder, ControlFlow& control,
                const schedule::LoopProgram& program, const Task& task) const override;
  bool runs_one_task() const override { return true; }
  bool has_prefetch() const override { return false; }
  bool prefers_narrow_integers() const override { return true; }

 protected:
  int64_t block_size() const { return block_size_; }
  // Declares the function, with the parameters of a kernel.
  llvm::Function* DeclareKernel(llvm::Module& module, const schedule::LoopProgram& program,
                                const std::string& symbol) const;
  // Returns the program's shared memory, in the address space `shared`.
  static llvm::Value* MakeShared(llvm::IRBuilder<>& builder, const schedule::LoopProgram& program,
                                 unsigned shared);
  // Returns the number of this thread's block, in 32 bits.
  virtual llvm::Value* Block(llvm::IRBuilder<>& builder) const = 0;

 private:
  const int64_t block_size_;
  const int64_t tasks_per_block_;
  const unsigned global_;
};

// Returns the threads of a block for tasks of one thread each: whole subgroups, as many as still
// give every unit two blocks.
int64_t GpuBlockSize(int64_t tasks, const drivers::Limits& limits);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_GPU_FRAME_H_
