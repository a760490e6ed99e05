#include "compiler/codegen/spirv/kernel.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/codegen/llvm/control.h"
#include "compiler/codegen/llvm/emit.h"
#include "compiler/codegen/llvm/frame.h"
#include "compiler/codegen/llvm/ops.h"
#include "compiler/codegen/spirv/disassemble.h"
#include "compiler/codegen/spirv/spirv.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/str_cat.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Op;

constexpr char kSpirvSymbol[] = "kernel";
// As for PTX: a few subgroups, so that threads hide each other's latency.
constexpr int64_t kSpirvBlockSizeMax = 256;
// Scratch of a thread; most of it is in slow memory.
constexpr int64_t kSpirvScratchBytesMax = 64 << 10;

// OpenCL's names of builtins, which the backend knows and replaces.
constexpr char kGroupNumber[] = "_Z12get_group_idj";
constexpr char kThreadNumber[] = "_Z12get_local_idj";
constexpr char kControlBarrier[] = "_Z22__spirv_ControlBarrieriii";
// SPIR-V, 3.27 and 3.25: a block; sequentially consistent, for global memory and for shared.
constexpr uint32_t kWorkgroupScope = 2;
constexpr uint32_t kAllMemory = 0x10 | 0x200 | 0x100;

llvm::FunctionCallee Builtin(llvm::IRBuilder<>& builder, const char* name, llvm::Type* result,
                             llvm::ArrayRef<llvm::Type*> parameters) {
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  llvm::FunctionCallee callee = module.getOrInsertFunction(
      name, llvm::FunctionType::get(result, parameters, /*isVarArg=*/false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setCallingConv(llvm::CallingConv::SPIR_FUNC);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  return callee;
}

llvm::CallInst* Call(llvm::IRBuilder<>& builder, llvm::FunctionCallee callee,
                     llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::CallInst* call = builder.CreateCall(callee, arguments);
  call->setCallingConv(llvm::CallingConv::SPIR_FUNC);
  return call;
}

// The parameters are the slot table, a number for each argument, and the first grid point of the
// launch. A block or a thread runs a task; in the second case, the thread with the task's number in
// the grid.
class SpirvFrame : public Frame {
 public:
  // `block_size`: the threads of a block; `tasks_per_block`: 1 or block_size.
  SpirvFrame(int64_t block_size, int64_t tasks_per_block)
      : block_size_(block_size), tasks_per_block_(tasks_per_block) {}

  llvm::Function* Declare(llvm::Module& module, const schedule::LoopProgram& program,
                          const std::string& symbol) const override {
    BeginSpirvModule(module);
    llvm::LLVMContext& context = module.getContext();
    // The slot table, the arguments, and the first grid point of the launch.
    std::vector<llvm::Type*> parameters(program.num_arguments + 2, llvm::Type::getInt64Ty(context));
    parameters[0] = llvm::PointerType::get(context, kSpirvGlobal);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), parameters,
                                         /*isVarArg=*/false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
    function->setCallingConv(llvm::CallingConv::SPIR_KERNEL);
    llvm::Metadata* sizes[3];
    for (int i = 0; i < 3; ++i) {
      const auto size = static_cast<uint64_t>(i == 0 ? block_size_ : 1);
      sizes[i] = llvm::ConstantAsMetadata::get(
          llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), size));
    }
    function->setMetadata("reqd_work_group_size", llvm::MDNode::get(context, sizes));
    return function;
  }

  // Loads addresses from the table as integers: the backend has to guess the types that pointers
  // point to, and this leaves less to guess.
  llvm::Value* Argument(llvm::IRBuilder<>& builder, int buffer) const override {
    llvm::Function* function = builder.GetInsertBlock()->getParent();
    llvm::Value* packed = function->getArg(static_cast<unsigned>(buffer) + 1);
    llvm::Value* slot = builder.CreateLShr(packed, drivers::kSlotOffsetBits);
    llvm::Value* entry = builder.CreateInBoundsGEP(builder.getInt64Ty(), function->getArg(0), slot);
    llvm::Value* base = builder.CreateAlignedLoad(builder.getInt64Ty(), entry, llvm::Align(8));
    llvm::Value* offset = builder.CreateAnd(packed, drivers::kSlotOffsetMask);
    return builder.CreateIntToPtr(builder.CreateAdd(base, offset), function->getArg(0)->getType());
  }

  llvm::Value* Scratch(llvm::IRBuilder<>& builder,
                       const schedule::LoopProgram& program) const override {
    auto* type = llvm::ArrayType::get(builder.getInt8Ty(), program.scratch_bytes);
    llvm::AllocaInst* scratch = builder.CreateAlloca(type);
    // No vector is wider.
    scratch->setAlignment(llvm::Align(16));
    return scratch;
  }

  llvm::Value* Shared(llvm::IRBuilder<>& builder,
                      const schedule::LoopProgram& program) const override {
    auto* type =
        llvm::ArrayType::get(builder.getInt8Ty(), static_cast<uint64_t>(program.shared_bytes));
    llvm::Module* module = builder.GetInsertBlock()->getModule();
    auto* shared = new llvm::GlobalVariable(*module, type, /*isConstant=*/false,
                                            llvm::GlobalValue::InternalLinkage,
                                            llvm::PoisonValue::get(type), "shared", nullptr,
                                            llvm::GlobalValue::NotThreadLocal, kSpirvShared);
    shared->setAlignment(llvm::Align(64));
    return shared;
  }

  llvm::Value* Thread(llvm::IRBuilder<>& builder) const override {
    return Number(builder, kThreadNumber, builder.getInt32Ty());
  }

  void Barrier(llvm::IRBuilder<>& builder) const override {
    llvm::Type* word = builder.getInt32Ty();
    llvm::FunctionCallee barrier =
        Builtin(builder, kControlBarrier, builder.getVoidTy(), {word, word, word});
    llvm::cast<llvm::Function>(barrier.getCallee())->setConvergent();
    Call(builder, barrier,
         {builder.getInt32(kWorkgroupScope), builder.getInt32(kWorkgroupScope),
          builder.getInt32(kAllMemory)})
        ->setConvergent();
  }

  void RunTasks(llvm::IRBuilder<>& builder, ControlFlow& control,
                const schedule::LoopProgram& program, const Task& task) const override {
    const int64_t tasks = program.grid_size();
    const int64_t numbers = (tasks + tasks_per_block_ - 1) / tasks_per_block_ * tasks_per_block_;
    llvm::Type* type = numbers <= INT32_MAX ? builder.getInt32Ty() : builder.getInt64Ty();
    const auto constant = [type](int64_t value) {
      return llvm::ConstantInt::get(type, static_cast<uint64_t>(value));
    };
    const llvm::Function* function = builder.GetInsertBlock()->getParent();
    llvm::Value* first = function->getArg(static_cast<unsigned>(program.num_arguments) + 1);
    llvm::Value* number =
        builder.CreateAdd(Number(builder, kGroupNumber, type), builder.CreateTrunc(first, type));
    if (tasks_per_block_ > 1) {
      number = builder.CreateMul(number, constant(tasks_per_block_));
      number = builder.CreateAdd(number, Number(builder, kThreadNumber, type));
    }
    // The last block may have more threads than there are tasks.
    llvm::Value* ours = nullptr;
    if (numbers > tasks) ours = builder.CreateICmpULT(number, constant(tasks));
    control.InSomeThreads(ours, [&] { task(number); });
  }

  // Never called: targets have no threads that shuffle (Limits::threads_per_shuffle).
  llvm::Value* Shuffle(llvm::IRBuilder<>& builder, llvm::Value* value,
                       int64_t distance) const override {
    return llvm::PoisonValue::get(value->getType());
  }
  bool StartCopy(llvm::IRBuilder<>& builder, llvm::Value* to, llvm::Value* from, int64_t bytes,
                 llvm::Value* valid) const override {
    return false;
  }
  void WaitForCopies(llvm::IRBuilder<>& builder) const override {}
  bool has_matrix_unit() const override { return false; }
  // The backend guesses fewer types if all addresses are in one block.
  bool runs_one_task() const override { return false; }
  bool has_prefetch() const override { return false; }
  bool prefers_narrow_integers() const override { return true; }

 private:
  // Returns the number of a block or a thread, in this type.
  static llvm::Value* Number(llvm::IRBuilder<>& builder, const char* name, llvm::Type* type) {
    const auto number = Builtin(builder, name, builder.getInt64Ty(), {builder.getInt32Ty()});
    return builder.CreateTrunc(Call(builder, number, {builder.getInt32(0)}), type);
  }

  const int64_t block_size_;
  const int64_t tasks_per_block_;
};

// Returns whole subgroups, as many as still give every unit two blocks.
int64_t SpirvBlockSize(int64_t tasks, const drivers::Limits& limits) {
  const int64_t subgroup = limits.threads_per_subgroup;
  const int64_t block_size_max = std::min<int64_t>(kSpirvBlockSizeMax, limits.threads_per_block);
  const int64_t per_block = tasks / (2 * int64_t{limits.compute_units});
  return std::max<int64_t>(1, std::clamp(per_block / subgroup * subgroup,
                                         std::min(subgroup, block_size_max), block_size_max));
}

// Returns whether code for it uses float64, although neither its value nor its operands are
// float64.
bool PassesFloat64(const ir::Node* node) {
  if (node->operands().empty()) return false;
  const DType from = node->operand(0)->dtype();
  switch (node->op()) {
    case Op::kSin:
      return true;
    case Op::kMod:
    case Op::kPow:
      return ir::IsFloat(from);
    case Op::kCast:
      return ir::IsShortFloat(node->dtype()) && !ir::IsFloat(from) && ir::SizeOf(from) > 2;
    default:
      return false;
  }
}

}  // namespace

bool IsSpirvSupported(const ir::Node* node, const drivers::Target& target) {
  return IsSupported(node) && (target.capabilities.fp64 || !PassesFloat64(node));
}

absl::StatusOr<Code> AssembleSpirv(const kernel::Kernel& kernel,
                                   const schedule::LoopProgram& program,
                                   const drivers::Target& target) {
  if (program.scratch_bytes > kSpirvScratchBytesMax) {
    return absl::UnimplementedError(StrCat("the schedule keeps ", program.scratch_bytes,
                                           " bytes for each task; a thread can have at most ",
                                           kSpirvScratchBytesMax));
  }
  Code code;
  int64_t block_size = program.threads;
  if (block_size == 1) {
    block_size = SpirvBlockSize(program.grid_size(), target.limits);
    code.tasks_per_block = static_cast<int>(block_size);
  }
  const SpirvFrame frame(block_size, code.tasks_per_block);
  llvm::LLVMContext context;
  auto module = EmitModule(context, program, target, frame, kSpirvSymbol);
  auto words = EmitSpirv(*module, target);
  if (!words.ok()) return words.status();
  code.code = *std::move(words);
  code.takes_slot_table = true;
  return code;
}

absl::StatusOr<std::string> DisassembleSpirv(const drivers::KernelImage& image,
                                             const drivers::Target& target) {
  return DisassembleSpirvWords(image.code);
}

}  // namespace kiln::codegen
