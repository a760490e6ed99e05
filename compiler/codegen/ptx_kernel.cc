#include "compiler/codegen/ptx_kernel.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "compiler/codegen/llvm_control.h"
#include "compiler/codegen/llvm_emit.h"
#include "compiler/codegen/llvm_frame.h"
#include "compiler/codegen/llvm_ops.h"
#include "compiler/codegen/ptx.h"
#include "compiler/ir/str_cat.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

constexpr char kPtxSymbol[] = "kernel";
// A few subgroups: enough that a unit's threads hide each other's waits, few enough that many
// blocks fit beside each other.
constexpr int64_t kPtxBlockSizeMax = 256;
// Threads of a unit for which there are registers, at least: 128 for each of them. Left to itself,
// ptxas makes room for more threads and spills a few registers of some kernels for it.
constexpr int64_t kPtxUnitThreadsMin = 512;
// Of a thread's memory, most of which is far away.
constexpr int64_t kPtxScratchBytesMax = 64 << 10;

// The larger copies go by the first cache, in which nobody looks for them. Partial ones write zeros
// behind what they read.
struct CopyRow {
  int64_t bytes;
  llvm::Intrinsic::ID whole, partial;
};
constexpr CopyRow kCopies[] = {
    {16, llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16,
     llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s},
    {8, llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8,
     llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s},
    {4, llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4,
     llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s},
};

// The slot table and a number for each argument. A task is a block's, or a thread's: then of its
// own number in the grid.
class ThreadFrame : public Frame {
 public:
  // `block_size`: the threads of a block; `tasks_per_block`: 1, or as many.
  ThreadFrame(int64_t block_size, int64_t tasks_per_block, const drivers::Capabilities& can)
      : block_size_(block_size), tasks_per_block_(tasks_per_block), can_(can) {}

  llvm::Function* Declare(llvm::Module& module, const schedule::LoopProgram& program,
                          const std::string& symbol) const override {
    llvm::LLVMContext& context = module.getContext();
    std::vector<llvm::Type*> parameters(program.num_arguments + 1, llvm::Type::getInt64Ty(context));
    parameters[0] = llvm::PointerType::get(context, kPtxGlobal);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), parameters,
                                         /*isVarArg=*/false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
    function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    function->addFnAttr("nvvm.maxntid", StrCat(block_size_));
    function->addFnAttr("nvvm.minctasm",
                        StrCat(std::max<int64_t>(1, kPtxUnitThreadsMin / block_size_)));
    return function;
  }

  // That addresses and offsets are multiples of the alignment stands in the instructions, so that
  // the backend may join loads.
  llvm::Value* Argument(llvm::IRBuilder<>& builder, int buffer) const override {
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

  llvm::Value* Scratch(llvm::IRBuilder<>& builder,
                       const schedule::LoopProgram& program) const override {
    auto* type = llvm::ArrayType::get(builder.getInt8Ty(), program.scratch_bytes);
    // Its accesses become those of local memory in the backend, which takes an alloca that says so
    // itself for a generic address.
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
    auto* shared =
        new llvm::GlobalVariable(*module, type, /*isConstant=*/false,
                                 llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type),
                                 "shared", nullptr, llvm::GlobalValue::NotThreadLocal, kPtxShared);
    shared->setAlignment(llvm::Align(64));
    return shared;
  }

  llvm::Value* Thread(llvm::IRBuilder<>& builder) const override {
    return builder.CreateIntrinsic(builder.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x,
                                   {});
  }

  void Barrier(llvm::IRBuilder<>& builder) const override {
    builder.CreateIntrinsic(builder.getVoidTy(), llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all,
                            {builder.getInt32(0)});
  }

  void RunTasks(llvm::IRBuilder<>& builder, ControlFlow& control,
                const schedule::LoopProgram& program, const Task& task) const override {
    const int64_t tasks = program.grid_size();
    const int64_t numbers = (tasks + tasks_per_block_ - 1) / tasks_per_block_ * tasks_per_block_;
    llvm::Type* type = numbers <= INT32_MAX ? builder.getInt32Ty() : builder.getInt64Ty();
    llvm::Value* block = builder.CreateIntrinsic(builder.getInt32Ty(),
                                                 llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
    llvm::Value* number = builder.CreateZExt(block, type);
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

  llvm::Value* Shuffle(llvm::IRBuilder<>& builder, llvm::Value* value,
                       int64_t distance) const override {
    constexpr int kAllThreads = -1, kWithinSubgroup = 31;
    return builder.CreateIntrinsic(
        builder.getInt32Ty(), llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
        {builder.getInt32(kAllThreads), value, builder.getInt32(static_cast<uint32_t>(distance)),
         builder.getInt32(kWithinSubgroup)});
  }
  bool StartCopy(llvm::IRBuilder<>& builder, llvm::Value* to, llvm::Value* from, int64_t bytes,
                 llvm::Value* valid) const override {
    if (!can_.async_copies) return false;
    const auto& row = *std::find_if(std::begin(kCopies), std::end(kCopies),
                                    [bytes](const CopyRow& of) { return of.bytes == bytes; });
    if (valid == nullptr) {
      builder.CreateIntrinsic(builder.getVoidTy(), row.whole, {to, from});
      return true;
    }
    llvm::Value* read = builder.CreateSelect(valid, builder.getInt32(static_cast<uint32_t>(bytes)),
                                             builder.getInt32(0));
    builder.CreateIntrinsic(builder.getVoidTy(), row.partial, {to, from, read});
    return true;
  }
  void WaitForCopies(llvm::IRBuilder<>& builder) const override {
    if (can_.async_copies)
      builder.CreateIntrinsic(builder.getVoidTy(), llvm::Intrinsic::nvvm_cp_async_wait_all, {});
  }

  bool has_matrix_unit() const override { return can_.matrix; }
  bool has_prefetch() const override { return false; }
  bool prefers_narrow_integers() const override { return true; }

 private:
  const int64_t block_size_;
  const int64_t tasks_per_block_;
  const drivers::Capabilities can_;
};

// Whole subgroups, as large as leaves every unit two blocks.
int64_t BlockSize(int64_t tasks, const drivers::Limits& limits) {
  const int64_t subgroup = limits.threads_per_subgroup;
  const int64_t most = std::min<int64_t>(kPtxBlockSizeMax, limits.threads_per_block);
  const int64_t per_block = tasks / (2 * int64_t{limits.compute_units});
  return std::max<int64_t>(
      1, std::clamp(per_block / subgroup * subgroup, std::min(subgroup, most), most));
}

}  // namespace

bool IsPtxSupported(const ir::Node* node, const drivers::Target& target) {
  return IsSupported(node);
}

absl::StatusOr<Code> AssemblePtx(const kernel::Kernel& kernel, const schedule::LoopProgram& program,
                                 const drivers::Target& target) {
  if (program.scratch_bytes > kPtxScratchBytesMax) {
    return absl::UnimplementedError(StrCat("the schedule keeps ", program.scratch_bytes,
                                           " bytes for each task; a thread gets at most ",
                                           kPtxScratchBytesMax));
  }
  Code code;
  int64_t block_size = program.threads;
  if (block_size == 1) {
    block_size = BlockSize(program.grid_size(), target.limits);
    code.tasks_per_block = static_cast<int>(block_size);
  }
  const ThreadFrame frame(block_size, code.tasks_per_block, target.capabilities);
  llvm::LLVMContext context;
  auto module = EmitModule(context, program, target, frame, kPtxSymbol);
  auto text = EmitPtx(*module, target);
  if (!text.ok()) return text.status();
  code.code = *std::move(text);
  code.takes_slot_table = true;
  return code;
}

absl::StatusOr<std::string> DisassemblePtx(const drivers::KernelImage& image,
                                           const drivers::Target& target) {
  return image.code;
}

}  // namespace kiln::codegen
