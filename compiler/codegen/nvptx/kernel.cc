#include "compiler/codegen/nvptx/kernel.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "compiler/codegen/llvm/emit.h"
#include "compiler/codegen/llvm/gpu_frame.h"
#include "compiler/codegen/llvm/ops.h"
#include "compiler/codegen/nvptx/ptx.h"
#include "compiler/ir/str_cat.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

constexpr char kPtxSymbol[] = "kernel";
// The minimum number of threads of a unit that must have registers: 128 registers each. Without
// this, ptxas leaves room for more threads, and spills a few registers of some kernels for that.
constexpr int64_t kPtxUnitThreadsMin = 512;
// Threads that keep more registers of the schedule than this get twice as many: spilled sums would
// be loaded and stored in each step.
constexpr int64_t kPtxManyRegisters = 48;
// Scratch of a thread; most of it is in slow memory.
constexpr int64_t kPtxScratchBytesMax = 64 << 10;

// The 16-byte copies bypass the first-level cache, where the data is not reused. Partial copies
// fill the bytes that they do not read with zeros.
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

// Returns how many 32-bit registers of a thread hold the schedule's sums and tiles.
int64_t RegistersOf(const schedule::LoopProgram& program) {
  int64_t bytes = 0;
  for (const schedule::LoopBuffer& buffer : program.buffers) {
    if (buffer.space != schedule::Space::kRegister) continue;
    bytes += buffer.elements * buffer.lanes * ir::SizeOf(buffer.dtype);
  }
  return bytes / 4;
}

class ThreadFrame : public GpuFrame {
 public:
  ThreadFrame(int64_t block_size, int64_t tasks_per_block, const drivers::Capabilities& can)
      : GpuFrame(block_size, tasks_per_block, kPtxGlobal), can_(can) {}

  llvm::Function* Declare(llvm::Module& module, const schedule::LoopProgram& program,
                          const std::string& symbol) const override {
    llvm::Function* function = DeclareKernel(module, program, symbol);
    function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    function->addFnAttr("nvvm.maxntid", StrCat(block_size()));
    int64_t threads_min = kPtxUnitThreadsMin;
    if (RegistersOf(program) > kPtxManyRegisters) threads_min /= 2;
    function->addFnAttr("nvvm.minctasm", StrCat(std::max<int64_t>(1, threads_min / block_size())));
    return function;
  }

  llvm::Value* Scratch(llvm::IRBuilder<>& builder,
                       const schedule::LoopProgram& program) const override {
    auto* type = llvm::ArrayType::get(builder.getInt8Ty(), program.scratch_bytes);
    // The backend turns its accesses into ones to local memory. It would mistake an alloca in the
    // local address space for a generic address.
    llvm::AllocaInst* scratch = builder.CreateAlloca(type);
    // No vector is wider.
    scratch->setAlignment(llvm::Align(16));
    return scratch;
  }

  llvm::Value* Shared(llvm::IRBuilder<>& builder,
                      const schedule::LoopProgram& program) const override {
    return MakeShared(builder, program, kPtxShared);
  }

  llvm::Value* Thread(llvm::IRBuilder<>& builder) const override {
    return builder.CreateIntrinsic(builder.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x,
                                   {});
  }

  void Barrier(llvm::IRBuilder<>& builder) const override {
    builder.CreateIntrinsic(builder.getVoidTy(), llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all,
                            {builder.getInt32(0)});
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

 protected:
  llvm::Value* Block(llvm::IRBuilder<>& builder) const override {
    return builder.CreateIntrinsic(builder.getInt32Ty(),
                                   llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
  }

 private:
  const drivers::Capabilities can_;
};

}  // namespace

bool IsPtxSupported(const ir::Node* node, const drivers::Target& target) {
  return IsSupported(node);
}

absl::StatusOr<Code> AssemblePtx(const kernel::Kernel& kernel, const schedule::LoopProgram& program,
                                 const drivers::Target& target) {
  if (program.scratch_bytes > kPtxScratchBytesMax) {
    return absl::UnimplementedError(StrCat("the schedule keeps ", program.scratch_bytes,
                                           " bytes for each task; a thread can have at most ",
                                           kPtxScratchBytesMax));
  }
  Code code;
  int64_t block_size = program.threads;
  if (block_size == 1) {
    block_size = GpuBlockSize(program.grid_size(), target.limits);
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
