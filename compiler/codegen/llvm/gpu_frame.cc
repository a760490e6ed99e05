#include "compiler/codegen/llvm/gpu_frame.h"

#include <algorithm>
#include <vector>

#include "compiler/codegen/llvm/control.h"
#include "drivers/interface/kernel_image.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

// A few subgroups: enough that a unit's threads hide each other's latency, few enough that many
// blocks fit on a unit.
constexpr int64_t kGpuBlockSizeMax = 256;

}  // namespace

llvm::Function* GpuFrame::DeclareKernel(llvm::Module& module, const schedule::LoopProgram& program,
                                        const std::string& symbol) const {
  llvm::LLVMContext& context = module.getContext();
  // The slot table, the arguments, and the first grid point of the launch.
  std::vector<llvm::Type*> parameters(program.num_arguments + 2, llvm::Type::getInt64Ty(context));
  parameters[0] = llvm::PointerType::get(context, global_);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), parameters, /*isVarArg=*/false);
  return llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
}

// The instructions carry the alignment of addresses and offsets, so that the backend may combine
// loads.
llvm::Value* GpuFrame::Argument(llvm::IRBuilder<>& builder, int buffer) const {
  llvm::Function* function = builder.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = builder.getContext();
  llvm::Value* packed = function->getArg(static_cast<unsigned>(buffer) + 1);
  llvm::Value* slot = builder.CreateLShr(packed, drivers::kSlotOffsetBits);
  llvm::Value* entry = builder.CreateInBoundsGEP(builder.getInt64Ty(), function->getArg(0), slot);
  llvm::LoadInst* base =
      builder.CreateAlignedLoad(function->getArg(0)->getType(), entry, llvm::Align(8));
  base->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
  auto* alignment = llvm::ConstantAsMetadata::get(
      builder.getInt64(static_cast<uint64_t>(drivers::kBufferAlignmentMin)));
  base->setMetadata(llvm::LLVMContext::MD_align, llvm::MDNode::get(context, {alignment}));
  return builder.CreateInBoundsGEP(builder.getInt8Ty(), base,
                                   builder.CreateAnd(packed, drivers::kSlotOffsetMask));
}

llvm::Value* GpuFrame::MakeShared(llvm::IRBuilder<>& builder, const schedule::LoopProgram& program,
                                  unsigned shared) {
  auto* type =
      llvm::ArrayType::get(builder.getInt8Ty(), static_cast<uint64_t>(program.shared_bytes));
  llvm::Module* module = builder.GetInsertBlock()->getModule();
  auto* memory = new llvm::GlobalVariable(
      *module, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
      llvm::PoisonValue::get(type), "shared", nullptr, llvm::GlobalValue::NotThreadLocal, shared);
  memory->setAlignment(llvm::Align(64));
  return memory;
}

void GpuFrame::RunTasks(llvm::IRBuilder<>& builder, ControlFlow& control,
                        const schedule::LoopProgram& program, const Task& task) const {
  const int64_t tasks = program.grid_size();
  const int64_t numbers = (tasks + tasks_per_block_ - 1) / tasks_per_block_ * tasks_per_block_;
  llvm::Type* type = numbers <= INT32_MAX ? builder.getInt32Ty() : builder.getInt64Ty();
  const llvm::Function* function = builder.GetInsertBlock()->getParent();
  llvm::Value* first = function->getArg(static_cast<unsigned>(program.num_arguments) + 1);
  llvm::Value* number =
      builder.CreateAdd(builder.CreateZExt(Block(builder), type), builder.CreateTrunc(first, type),
                        "", /*HasNUW=*/true, /*HasNSW=*/true);
  if (tasks_per_block_ > 1) {
    number = builder.CreateMul(
        number, llvm::ConstantInt::get(type, static_cast<uint64_t>(tasks_per_block_)));
    number = builder.CreateAdd(number, builder.CreateZExt(Thread(builder), type));
  }
  // The last block may have more threads than there are tasks.
  llvm::Value* ours = nullptr;
  if (numbers > tasks) {
    ours =
        builder.CreateICmpULT(number, llvm::ConstantInt::get(type, static_cast<uint64_t>(tasks)));
  }
  control.InSomeThreads(ours, [&] { task(number); });
}

int64_t GpuBlockSize(int64_t tasks, const drivers::Limits& limits) {
  const int64_t subgroup = limits.threads_per_subgroup;
  const int64_t block_size_max = std::min<int64_t>(kGpuBlockSizeMax, limits.threads_per_block);
  const int64_t per_block = tasks / (2 * int64_t{limits.compute_units});
  return std::max<int64_t>(1, std::clamp(per_block / subgroup * subgroup,
                                         std::min(subgroup, block_size_max), block_size_max));
}

}  // namespace kiln::codegen
