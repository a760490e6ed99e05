// The code around a task: the function's parameters, the addresses of buffers, and the tasks that
// one call or thread runs. There is one frame for each way in which drivers start kernels
// (drivers/interface/kernel_image.h).
#ifndef KILN_COMPILER_CODEGEN_LLVM_FRAME_H_
#define KILN_COMPILER_CODEGEN_LLVM_FRAME_H_

#include <functional>
#include <string>

#include "compiler/schedule/loop_program.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

class ControlFlow;

class Frame {
 public:
  virtual ~Frame() = default;

  // Declares the function `symbol`, without a body.
  virtual llvm::Function* Declare(llvm::Module& module, const schedule::LoopProgram& program,
                                  const std::string& symbol) const = 0;

  // Return the address of the argument `buffer`, and of the task's scratch. Requires: the builder
  // is in the function's entry.
  virtual llvm::Value* Argument(llvm::IRBuilder<>& builder, int buffer) const = 0;
  virtual llvm::Value* Scratch(llvm::IRBuilder<>& builder,
                               const schedule::LoopProgram& program) const = 0;

  // For tasks that are run by a block of threads: Shared returns their shared memory, Thread the
  // number of this thread (32 bits), and Barrier waits for all of them.
  virtual llvm::Value* Shared(llvm::IRBuilder<>& builder,
                              const schedule::LoopProgram& program) const = 0;
  virtual llvm::Value* Thread(llvm::IRBuilder<>& builder) const = 0;
  virtual void Barrier(llvm::IRBuilder<>& builder) const = 0;

  // Emits code that runs `task` for the numbers of the tasks of this call: integers of 32 or 64
  // bits, within the grid. Requires: the builder is in the function's entry.
  using Task = std::function<void(llvm::Value* number)>;
  virtual void RunTasks(llvm::IRBuilder<>& builder, ControlFlow& control,
                        const schedule::LoopProgram& program, const Task& task) const = 0;

  // Returns whether a thread runs one task only. Its arguments need not be loaded before it is
  // known which of them the task uses.
  virtual bool runs_one_task() const = 0;

  // Returns the 32-bit `value` of the thread whose number differs only by `distance`, a power of
  // two below Limits::threads_per_shuffle. Requires: all of those threads are here.
  virtual llvm::Value* Shuffle(llvm::IRBuilder<>& builder, llvm::Value* value,
                               int64_t distance) const = 0;
  // Copies `bytes` bytes, a power of two from 4 to 16, from an argument to shared memory, both
  // aligned to that size. The copy completes before WaitForCopies returns. Writes zeros where it is
  // not `valid` (null: always valid). Returns false if there is no such instruction.
  virtual bool StartCopy(llvm::IRBuilder<>& builder, llvm::Value* to, llvm::Value* from,
                         int64_t bytes, llvm::Value* valid) const = 0;
  virtual void WaitForCopies(llvm::IRBuilder<>& builder) const = 0;
  // Returns whether threads have a matrix unit (nvptx/matrix.h).
  virtual bool has_matrix_unit() const = 0;
  // Returns whether memory can be prefetched.
  virtual bool has_prefetch() const = 0;
  // Returns whether 64-bit integer arithmetic costs several times as much as 32-bit arithmetic.
  virtual bool prefers_narrow_integers() const = 0;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_FRAME_H_
