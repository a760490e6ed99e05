#include "compiler/codegen/x86/kernel.h"

#include <utility>

#include "compiler/codegen/llvm/control.h"
#include "compiler/codegen/llvm/emit.h"
#include "compiler/codegen/llvm/frame.h"
#include "compiler/codegen/llvm/ops.h"
#include "compiler/codegen/x86/x86.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

constexpr char kSymbol[] = "kernel";

// The parameters: the table of the buffers' addresses, the first task and the end, scratch.
class TaskRangeFrame : public Frame {
 public:
  llvm::Function* Declare(llvm::Module& module, const schedule::LoopProgram& program,
                          const std::string& symbol) const override {
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* pointer = llvm::PointerType::get(context, 0);
    llvm::Type* integer = llvm::Type::getInt64Ty(context);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                         {pointer, integer, integer, pointer}, /*isVarArg=*/false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
    // Each thread has its own scratch, so no other pointer aliases it. Two arguments may be one
    // buffer (kernel/in_place.h), so nothing is said about them.
    function->addParamAttr(3, llvm::Attribute::NoAlias);
    function->addParamAttr(3, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
    return function;
  }

  llvm::Value* Argument(llvm::IRBuilder<>& builder, int buffer) const override {
    llvm::Type* pointer = builder.getPtrTy();
    llvm::Value* slot = builder.CreateConstInBoundsGEP1_64(pointer, FunctionOf(builder)->getArg(0),
                                                           static_cast<uint64_t>(buffer));
    return builder.CreateLoad(pointer, slot);
  }

  llvm::Value* Scratch(llvm::IRBuilder<>& builder,
                       const schedule::LoopProgram& program) const override {
    return FunctionOf(builder)->getArg(3);
  }

  // One thread runs each task.
  llvm::Value* Shared(llvm::IRBuilder<>&, const schedule::LoopProgram&) const override {
    return nullptr;
  }
  llvm::Value* Thread(llvm::IRBuilder<>& builder) const override { return builder.getInt32(0); }
  void Barrier(llvm::IRBuilder<>&) const override {}

  // for (task = begin; task < end; ++task)
  void RunTasks(llvm::IRBuilder<>& builder, ControlFlow& control,
                const schedule::LoopProgram& program, const Task& task) const override {
    llvm::Function* function = FunctionOf(builder);
    control.CountedLoop(function->getArg(1), function->getArg(2), /*runs=*/false, {}, task);
  }

  llvm::Value* Shuffle(llvm::IRBuilder<>&, llvm::Value* value, int64_t) const override {
    return value;  // of the only thread
  }
  bool StartCopy(llvm::IRBuilder<>&, llvm::Value*, llvm::Value*, int64_t,
                 llvm::Value*) const override {
    return false;
  }
  void WaitForCopies(llvm::IRBuilder<>&) const override {}
  bool has_matrix_unit() const override { return false; }
  bool runs_one_task() const override { return false; }
  bool has_prefetch() const override { return true; }
  bool prefers_narrow_integers() const override { return false; }

 private:
  static llvm::Function* FunctionOf(llvm::IRBuilder<>& builder) {
    return builder.GetInsertBlock()->getParent();
  }
};

}  // namespace

bool IsX86Supported(const ir::Node* node, const drivers::Target& target) {
  return IsSupported(node);
}

absl::StatusOr<Code> AssembleX86(const kernel::Kernel& kernel, const schedule::LoopProgram& program,
                                 const drivers::Target& target) {
  llvm::LLVMContext context;
  auto module = EmitModule(context, program, target, TaskRangeFrame(), kSymbol);
  auto blob = EmitBlob(*module, target, kSymbol);
  if (!blob.ok()) return blob.status();
  return Code{
      .code = std::move(blob->code), .entry = blob->entry, .scratch_bytes = program.scratch_bytes};
}

absl::StatusOr<std::string> DisassembleX86(const drivers::KernelImage& image,
                                           const drivers::Target& target) {
  return Disassemble(image.code, image.entry, target);
}

}  // namespace kiln::codegen
