#include "compiler/codegen/amdgcn/host_twin.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/amdgcn/amdgcn.h"
#include "compiler/codegen/x86/x86.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"

namespace kiln::codegen {
namespace {

constexpr char kTwinSymbol[] = "twin";

// With fused multiply-add and conversions of float16, as AMD's GPUs have.
drivers::Target HostTarget() {
  drivers::Target host;
  host.architecture = std::string(kX86Architecture);
  host.processor = "x86-64-v3";
  return host;
}

// Moves the kernel's body into a function with one parameter, the HostTwinCall.
class TwinWriter {
 public:
  TwinWriter(llvm::Module& module, llvm::Function& kernel)
      : module_(module), kernel_(kernel), builder_(module.getContext()) {}

  absl::Status Write(HostTwinFooter* footer) {
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy()}, false);
    twin_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kTwinSymbol, module_);
    twin_->setDoesNotThrow();
    llvm::BasicBlock* body = &kernel_.getEntryBlock();
    twin_->splice(twin_->end(), &kernel_);
    auto* entry = llvm::BasicBlock::Create(module_.getContext(), "entry_of_twin", twin_, body);
    builder_.SetInsertPoint(entry);
    ReplaceParameters(footer);
    if (absl::Status status = ReplaceShared(footer); !status.ok()) return status;
    builder_.CreateBr(body);
    if (absl::Status status = ReplaceIntrinsics(footer); !status.ok()) return status;
    kernel_.eraseFromParent();
    return absl::OkStatus();
  }

 private:
  llvm::Value* Field(size_t offset, llvm::Type* type) {
    llvm::Value* at = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), twin_->getArg(0),
                                                          static_cast<uint64_t>(offset));
    return builder_.CreateLoad(type, at);
  }

  // The arguments are contiguous, each 8 bytes long and aligned.
  void ReplaceParameters(HostTwinFooter* footer) {
    llvm::Value* arguments = Field(offsetof(HostTwinCall, kernel_arguments), builder_.getPtrTy());
    for (llvm::Argument& parameter : kernel_.args()) {
      llvm::Value* at = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), arguments,
                                                            footer->argument_bytes);
      parameter.replaceAllUsesWith(builder_.CreateLoad(parameter.getType(), at));
      footer->argument_bytes += sizeof(uint64_t);
    }
  }

  absl::Status ReplaceShared(HostTwinFooter* footer) {
    std::vector<llvm::GlobalVariable*> shared;
    for (llvm::GlobalVariable& variable : module_.globals()) {
      if (variable.getAddressSpace() == kAmdgcnShared) shared.push_back(&variable);
    }
    if (shared.empty()) return absl::OkStatus();
    if (shared.size() > 1)
      return absl::InternalError("a kernel for AMD's GPUs has more than one shared variable");
    footer->shared_bytes = module_.getDataLayout().getTypeAllocSize(shared[0]->getValueType());
    llvm::convertUsersOfConstantsToInstructions({shared[0]});
    shared[0]->replaceAllUsesWith(Field(offsetof(HostTwinCall, shared), shared[0]->getType()));
    shared[0]->eraseFromParent();
    return absl::OkStatus();
  }

  absl::Status ReplaceIntrinsics(HostTwinFooter* footer) {
    std::vector<llvm::IntrinsicInst*> calls;
    for (llvm::Instruction& instruction : llvm::instructions(*twin_)) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (call != nullptr && call->getCalledFunction()->isTargetIntrinsic()) calls.push_back(call);
    }
    for (llvm::IntrinsicInst* call : calls) {
      builder_.SetInsertPoint(call);
      llvm::Value* value = nullptr;
      if (absl::Status status = Replacement(*call, footer, &value); !status.ok()) return status;
      if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(value);
      call->eraseFromParent();
    }
    return absl::OkStatus();
  }

  absl::Status Replacement(const llvm::IntrinsicInst& call, HostTwinFooter* footer,
                           llvm::Value** value) {
    llvm::Type* integer = builder_.getInt32Ty();
    switch (call.getIntrinsicID()) {
      case llvm::Intrinsic::amdgcn_workitem_id_x:
        *value = Field(offsetof(HostTwinCall, thread), integer);
        return absl::OkStatus();
      case llvm::Intrinsic::amdgcn_workgroup_id_x:
        *value = Field(offsetof(HostTwinCall, block), integer);
        return absl::OkStatus();
      case llvm::Intrinsic::amdgcn_s_barrier:
        footer->waits = 1;
        Ask(offsetof(HostTwinCall, barrier), builder_.getVoidTy(), {});
        return absl::OkStatus();
      case llvm::Intrinsic::amdgcn_ds_swizzle: {
        // Bit masks: and, or, xor of five bits each. Only patterns whose `and` keeps all bits and
        // whose `or` sets none are supported.
        const auto pattern = llvm::cast<llvm::ConstantInt>(call.getArgOperand(1))->getZExtValue();
        if ((pattern & 0x83ff) != 0x1f)
          return absl::InternalError(absl::StrCat("a swizzle with the pattern ", pattern));
        footer->waits = 1;
        llvm::Value* thread = Field(offsetof(HostTwinCall, thread), integer);
        *value = Ask(offsetof(HostTwinCall, shuffle), integer,
                     {builder_.CreateXor(thread, pattern >> 10), call.getArgOperand(0)});
        return absl::OkStatus();
      }
      case llvm::Intrinsic::amdgcn_ds_bpermute:
        footer->waits = 1;
        *value = Ask(offsetof(HostTwinCall, shuffle), integer,
                     {builder_.CreateLShr(call.getArgOperand(0), 2), call.getArgOperand(1)});
        return absl::OkStatus();
      default:
        return absl::InternalError(
            absl::StrCat("no twin of ", call.getCalledFunction()->getName().str()));
    }
  }

  llvm::Value* Ask(size_t offset, llvm::Type* result, std::vector<llvm::Value*> arguments) {
    llvm::Value* function = Field(offset, builder_.getPtrTy());
    arguments.insert(arguments.begin(), twin_->getArg(0));
    std::vector<llvm::Type*> types;
    for (const llvm::Value* argument : arguments) types.push_back(argument->getType());
    return builder_.CreateCall(llvm::FunctionType::get(result, types, false), function, arguments);
  }

  llvm::Module& module_;
  llvm::Function& kernel_;
  llvm::IRBuilder<> builder_;
  llvm::Function* twin_ = nullptr;
};

}  // namespace

absl::Status AddHostTwin(llvm::Module& module, const std::string& symbol, std::string* object) {
  llvm::Function* kernel = module.getFunction(symbol);
  if (kernel == nullptr || kernel->isDeclaration())
    return absl::InternalError(absl::StrCat("the module has no kernel ", symbol));
  HostTwinFooter footer = {};
  footer.magic = kHostTwinMagic;
  if (absl::Status status = TwinWriter(module, *kernel).Write(&footer); !status.ok()) return status;
  auto blob = EmitBlob(module, HostTarget(), kTwinSymbol);
  if (!blob.ok()) return blob.status();
  footer.entry = static_cast<uint64_t>(blob->entry);
  footer.code_bytes = blob->code.size();
  absl::StrAppend(object, blob->code,
                  absl::string_view(reinterpret_cast<const char*>(&footer), sizeof(footer)));
  return absl::OkStatus();
}

}  // namespace kiln::codegen
