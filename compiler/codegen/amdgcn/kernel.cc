#include "compiler/codegen/amdgcn/kernel.h"

#include <cstdint>
#include <utility>

#include "compiler/codegen/amdgcn/amdgcn.h"
#include "compiler/codegen/amdgcn/host_twin.h"
#include "compiler/codegen/llvm/emit.h"
#include "compiler/codegen/llvm/gpu_frame.h"
#include "compiler/codegen/llvm/ops.h"
#include "compiler/ir/str_cat.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

constexpr char kAmdgcnSymbol[] = "kernel";
// Scratch of a thread; most of it is in slow memory.
constexpr int64_t kAmdgcnScratchBytesMax = 64 << 10;
// The number of threads that can exchange values with one swizzle.
constexpr int64_t kSwizzleThreads = 32;

// Inputs that LLVM would otherwise assume to be used, and that the runtime would have to provide.
constexpr const char* kUnused[] = {
    "amdgpu-no-completion-action", "amdgpu-no-default-queue",  "amdgpu-no-dispatch-id",
    "amdgpu-no-dispatch-ptr",      "amdgpu-no-heap-ptr",       "amdgpu-no-hostcall-ptr",
    "amdgpu-no-implicitarg-ptr",   "amdgpu-no-lds-kernel-id",  "amdgpu-no-multigrid-sync-arg",
    "amdgpu-no-queue-ptr",         "amdgpu-no-workgroup-id-y", "amdgpu-no-workgroup-id-z",
    "amdgpu-no-workitem-id-y",     "amdgpu-no-workitem-id-z",
};

class WorkItemFrame : public GpuFrame {
 public:
  WorkItemFrame(int64_t block_size, int64_t tasks_per_block)
      : GpuFrame(block_size, tasks_per_block, kAmdgcnGlobal) {}

  llvm::Function* Declare(llvm::Module& module, const schedule::LoopProgram& program,
                          const std::string& symbol) const override {
    PrepareAmdgcnModule(module);
    llvm::Function* function = DeclareKernel(module, program, symbol);
    function->setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
    // Protected, so that the descriptor refers to it without a table of the dynamic linker.
    function->setVisibility(llvm::GlobalValue::ProtectedVisibility);
    function->addFnAttr("amdgpu-flat-work-group-size", StrCat(block_size(), ",", block_size()));
    function->addFnAttr("uniform-work-group-size", "true");
    auto* size = llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
        llvm::Type::getInt32Ty(module.getContext()), static_cast<uint64_t>(block_size())));
    auto* one = llvm::ConstantAsMetadata::get(
        llvm::ConstantInt::get(llvm::Type::getInt32Ty(module.getContext()), 1));
    function->setMetadata("reqd_work_group_size",
                          llvm::MDNode::get(module.getContext(), {size, one, one}));
    return function;
  }

  llvm::Value* Scratch(llvm::IRBuilder<>& builder,
                       const schedule::LoopProgram& program) const override {
    auto* type = llvm::ArrayType::get(builder.getInt8Ty(), program.scratch_bytes);
    llvm::AllocaInst* scratch = builder.CreateAlloca(type, kAmdgcnPrivate);
    // No vector is wider.
    scratch->setAlignment(llvm::Align(16));
    return scratch;
  }

  llvm::Value* Shared(llvm::IRBuilder<>& builder,
                      const schedule::LoopProgram& program) const override {
    return MakeShared(builder, program, kAmdgcnShared);
  }

  llvm::Value* Thread(llvm::IRBuilder<>& builder) const override {
    return builder.CreateIntrinsic(builder.getInt32Ty(), llvm::Intrinsic::amdgcn_workitem_id_x, {});
  }

  // The instruction waits for the threads, the fences order their writes.
  void Barrier(llvm::IRBuilder<>& builder) const override {
    const llvm::SyncScope::ID block = builder.getContext().getOrInsertSyncScopeID("workgroup");
    builder.CreateFence(llvm::AtomicOrdering::Release, block);
    builder.CreateIntrinsic(builder.getVoidTy(), llvm::Intrinsic::amdgcn_s_barrier, {});
    builder.CreateFence(llvm::AtomicOrdering::Acquire, block);
  }

  llvm::Value* Shuffle(llvm::IRBuilder<>& builder, llvm::Value* value,
                       int64_t distance) const override {
    if (distance < kSwizzleThreads) {
      // Bit-mask mode: `and` keeps all bits of the thread's number, `xor` changes one.
      constexpr uint32_t kAnd = 0x1f;
      constexpr int kXorShift = 10;
      const uint32_t pattern = static_cast<uint32_t>(distance) << kXorShift | kAnd;
      return builder.CreateIntrinsic(builder.getInt32Ty(), llvm::Intrinsic::amdgcn_ds_swizzle,
                                     {value, builder.getInt32(pattern)});
    }
    llvm::Value* from =
        builder.CreateXor(Thread(builder), builder.getInt32(static_cast<uint32_t>(distance)));
    return builder.CreateIntrinsic(builder.getInt32Ty(), llvm::Intrinsic::amdgcn_ds_bpermute,
                                   {builder.CreateShl(from, 2), value});
  }
  bool StartCopy(llvm::IRBuilder<>&, llvm::Value*, llvm::Value*, int64_t,
                 llvm::Value*) const override {
    return false;
  }
  void WaitForCopies(llvm::IRBuilder<>&) const override {}
  bool has_matrix_unit() const override { return false; }

 protected:
  llvm::Value* Block(llvm::IRBuilder<>& builder) const override {
    return builder.CreateIntrinsic(builder.getInt32Ty(), llvm::Intrinsic::amdgcn_workgroup_id_x,
                                   {});
  }
};

std::unique_ptr<llvm::Module> EmitAmdgcnModule(llvm::LLVMContext& context,
                                               const schedule::LoopProgram& program,
                                               const drivers::Target& target,
                                               const WorkItemFrame& frame) {
  auto module = EmitModule(context, program, target, frame, kAmdgcnSymbol);
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    for (const char* attribute : kUnused) function.addFnAttr(attribute);
    // With recursion the stack size would be unknown.
    function.setDoesNotRecurse();
  }
  return module;
}

}  // namespace

bool IsAmdgcnSupported(const ir::Node* node, const drivers::Target& target) {
  return IsSupported(node);
}

absl::StatusOr<Code> AssembleAmdgcn(const kernel::Kernel& kernel,
                                    const schedule::LoopProgram& program,
                                    const drivers::Target& target) {
  if (program.scratch_bytes > kAmdgcnScratchBytesMax) {
    return absl::UnimplementedError(StrCat("the schedule keeps ", program.scratch_bytes,
                                           " bytes for each task; a thread can have at most ",
                                           kAmdgcnScratchBytesMax));
  }
  Code code;
  int64_t block_size = program.threads;
  if (block_size == 1) {
    block_size = GpuBlockSize(program.grid_size(), target.limits);
    code.tasks_per_block = static_cast<int>(block_size);
  }
  const WorkItemFrame frame(block_size, code.tasks_per_block);
  llvm::LLVMContext context;
  auto object = EmitCodeObject(*EmitAmdgcnModule(context, program, target, frame), target);
  if (!object.ok()) return object.status();
  code.code = *std::move(object);
  if (target.Has(std::string(kHostTwinFeature))) {
    // Emits the module again, since the backend has rewritten the first one.
    absl::Status added =
        AddHostTwin(*EmitAmdgcnModule(context, program, target, frame), kAmdgcnSymbol, &code.code);
    if (!added.ok()) return added;
  }
  code.takes_slot_table = true;
  return code;
}

absl::StatusOr<std::string> DisassembleAmdgcn(const drivers::KernelImage& image,
                                              const drivers::Target& target) {
  return DisassembleCodeObject(image.code, target);
}

}  // namespace kiln::codegen
