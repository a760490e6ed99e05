// What stands around the code of a task: the function's parameters, where its buffers are, and
// which tasks one call or thread runs. There is one for each way in which drivers start kernels
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

  // The function `symbol`, without a body.
  virtual llvm::Function* Declare(llvm::Module& module, const schedule::LoopProgram& program,
                                  const std::string& symbol) const = 0;

  // Where the argument `buffer`, and the task's scratch, begin. The builder stands in the
  // function's entry.
  virtual llvm::Value* Argument(llvm::IRBuilder<>& builder, int buffer) const = 0;
  virtual llvm::Value* Scratch(llvm::IRBuilder<>& builder,
                               const schedule::LoopProgram& program) const = 0;

  // Of the block of threads that runs a task, where tasks have some: the memory that they share,
  // the number of this thread (32 bits), and where each waits for the others.
  virtual llvm::Value* Shared(llvm::IRBuilder<>& builder,
                              const schedule::LoopProgram& program) const = 0;
  virtual llvm::Value* Thread(llvm::IRBuilder<>& builder) const = 0;
  virtual void Barrier(llvm::IRBuilder<>& builder) const = 0;

  // Writes what runs `task` for the numbers of the tasks that this call has to run: integers of 32
  // or 64 bits, within the grid. The builder stands in the function's entry.
  using Task = std::function<void(llvm::Value* number)>;
  virtual void RunTasks(llvm::IRBuilder<>& builder, ControlFlow& control,
                        const schedule::LoopProgram& program, const Task& task) const = 0;

  // A value of 32 bits that the thread has whose number differs by `distance` alone, a power of
  // two below Limits::threads_per_shuffle; all of those threads are here.
  virtual llvm::Value* Shuffle(llvm::IRBuilder<>& builder, llvm::Value* value,
                               int64_t distance) const = 0;
  // Copies so many bytes, a power of two from 4 to 16, both ends aligned to them, from an argument
  // to shared memory, some time before WaitForCopies returns; zeros where not `valid` (null: always
  // is). False: there is no such instruction.
  virtual bool StartCopy(llvm::IRBuilder<>& builder, llvm::Value* to, llvm::Value* from,
                         int64_t bytes, llvm::Value* valid) const = 0;
  virtual void WaitForCopies(llvm::IRBuilder<>& builder) const = 0;
  // Whether threads have a matrix unit (ptx_matrix.h).
  virtual bool has_matrix_unit() const = 0;
  // Whether memory can be asked to come near before it is read.
  virtual bool has_prefetch() const = 0;
  // Whether 64-bit integer arithmetic costs several times what 32-bit arithmetic does.
  virtual bool prefers_narrow_integers() const = 0;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_FRAME_H_
