#include "compiler/codegen/spirv/rewrite.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace kiln::codegen {
namespace {

using llvm::Instruction;
using llvm::Value;
using llvm::Intrinsic::ID;

// Turns zext(trunc x) into a mask of the result's width, sext(trunc x) into two shifts.
void RewriteExtension(llvm::CastInst& extension) {
  auto& truncation = llvm::cast<llvm::TruncInst>(*extension.getOperand(0));
  llvm::IRBuilder<> b(&extension);
  llvm::Type* type = extension.getType();
  const unsigned bits = truncation.getType()->getScalarSizeInBits();
  const unsigned width = type->getScalarSizeInBits();
  Value* whole = b.CreateZExtOrTrunc(truncation.getOperand(0), type);
  Value* result;
  if (llvm::isa<llvm::ZExtInst>(extension)) {
    const llvm::APInt mask = llvm::APInt::getLowBitsSet(width, bits);
    result = b.CreateAnd(whole, llvm::ConstantInt::get(type, mask));
  } else {
    result = b.CreateAShr(b.CreateShl(whole, width - bits), width - bits);
  }
  extension.replaceAllUsesWith(result);
  extension.eraseFromParent();
  if (truncation.use_empty()) truncation.eraseFromParent();
}

// A rewritten extension may be the operand of another one, or extend a truncation itself.
void RewriteExtensions(llvm::Function& function) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<llvm::CastInst*> extensions;
    for (Instruction& instruction : llvm::instructions(function)) {
      auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction);
      const bool extends =
          cast && (llvm::isa<llvm::ZExtInst>(cast) || llvm::isa<llvm::SExtInst>(cast));
      if (extends && llvm::isa<llvm::TruncInst>(cast->getOperand(0))) extensions.push_back(cast);
    }
    for (llvm::CastInst* extension : extensions) RewriteExtension(*extension);
    changed = !extensions.empty();
  }
}

// One masked access.
class MaskedLanes {
 public:
  MaskedLanes(llvm::IntrinsicInst& call, int pointer, int mask, llvm::FixedVectorType* type)
      : call_(call),
        pointer_(call.getArgOperand(static_cast<unsigned>(pointer))),
        mask_(call.getArgOperand(static_cast<unsigned>(mask))),
        align_(call.getParamAlign(static_cast<unsigned>(pointer)).valueOrOne()),
        element_(type->getElementType()),
        lanes_(type->getNumElements()) {}

  void Load() {
    Value* result = call_.getArgOperand(2);
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      Value* const before = result;
      const auto load = [&](llvm::IRBuilder<>& b) -> Value* {
        return b.CreateInsertElement(
            before, b.CreateAlignedLoad(element_, Pointer(b, lane), align_), uint64_t{lane});
      };
      result = WhereMasked(lane, before, load);
    }
    call_.replaceAllUsesWith(result);
    call_.eraseFromParent();
  }

  void Store() {
    Value* stored = call_.getArgOperand(0);
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      WhereMasked(lane, nullptr, [&](llvm::IRBuilder<>& b) -> Value* {
        b.CreateAlignedStore(b.CreateExtractElement(stored, uint64_t{lane}), Pointer(b, lane),
                             align_);
        return nullptr;
      });
    }
    call_.eraseFromParent();
  }

 private:
  // Inserts before the call: the result of `access` where the lane's mask is true, else
  // `otherwise`.
  template <typename Access>
  Value* WhereMasked(unsigned lane, Value* otherwise, const Access& access) {
    llvm::IRBuilder<> b(&call_);
    Value* bit = b.CreateExtractElement(mask_, uint64_t{lane});
    if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(bit))
      return known->isZero() ? otherwise : access(b);
    Instruction* inside = llvm::SplitBlockAndInsertIfThen(bit, &call_, /*Unreachable=*/false);
    llvm::IRBuilder<> in(inside);
    Value* value = access(in);
    if (value == nullptr) return nullptr;
    llvm::IRBuilder<> after(&call_);
    llvm::PHINode* phi = after.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, inside->getParent());
    phi->addIncoming(otherwise, inside->getParent()->getSinglePredecessor());
    return phi;
  }

  // SPIR-V has no vectors of pointers: these were made of one pointer and a vector of offsets.
  Value* Pointer(llvm::IRBuilder<>& b, unsigned lane) const {
    if (!pointer_->getType()->isVectorTy()) return b.CreateConstGEP1_64(element_, pointer_, lane);
    const auto& pointers = llvm::cast<llvm::GEPOperator>(*pointer_);
    Value* offset = b.CreateExtractElement(pointers.getOperand(1), uint64_t{lane});
    return b.CreateGEP(pointers.getSourceElementType(), pointers.getOperand(0), offset);
  }

  llvm::IntrinsicInst& call_;
  Value* const pointer_;
  Value* const mask_;
  const llvm::Align align_;
  llvm::Type* const element_;
  const unsigned lanes_;
};

void RewriteMasked(llvm::Function& function) {
  std::vector<llvm::IntrinsicInst*> calls;
  for (Instruction& instruction : llvm::instructions(function)) {
    if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) calls.push_back(call);
  }
  for (llvm::IntrinsicInst* call : calls) {
    llvm::SmallVector<Value*, 1> pointers;
    const auto type_of = [](Value* value) {
      return llvm::cast<llvm::FixedVectorType>(value->getType());
    };
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::masked_load:
      case llvm::Intrinsic::masked_gather:
        pointers.push_back(call->getArgOperand(0));
        MaskedLanes(*call, 0, 1, type_of(call)).Load();
        break;
      case llvm::Intrinsic::masked_store:
      case llvm::Intrinsic::masked_scatter:
        pointers.push_back(call->getArgOperand(1));
        MaskedLanes(*call, 1, 2, type_of(call->getArgOperand(0))).Store();
        break;
      default:
        break;
    }
    for (Value* pointer : pointers) {
      auto* vector = llvm::dyn_cast<Instruction>(pointer);
      if (vector != nullptr && vector->getType()->isVectorTy() && vector->use_empty())
        vector->eraseFromParent();
    }
  }
}

// The runtime decides what a saturating conversion gives for NaN: on some processors it is the
// largest number.
void RewriteConversions(llvm::Function& function) {
  std::vector<llvm::IntrinsicInst*> calls;
  for (Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call == nullptr) continue;
    const ID id = call->getIntrinsicID();
    if (id == llvm::Intrinsic::fptosi_sat || id == llvm::Intrinsic::fptoui_sat)
      calls.push_back(call);
  }
  for (llvm::IntrinsicInst* call : calls) {
    llvm::IRBuilder<> b(call->getNextNode());
    Value* const number = call->getArgOperand(0);
    Value* const zero = llvm::Constant::getNullValue(call->getType());
    Value* const result = b.CreateSelect(b.CreateFCmpUNO(number, number), zero, call);
    call->replaceUsesWithIf(result, [&](llvm::Use& use) { return use.getUser() != result; });
  }
}

constexpr ID kIntrinsics[] = {
    llvm::Intrinsic::ctlz,       llvm::Intrinsic::fabs,
    llvm::Intrinsic::fma,        llvm::Intrinsic::fptosi_sat,
    llvm::Intrinsic::fptoui_sat, llvm::Intrinsic::sqrt,
    llvm::Intrinsic::trunc,      llvm::Intrinsic::vector_reduce_or,
};

// Returns the type's problem, or an empty text if the backend has the type.
std::string WhatIsMissing(const llvm::Type* type) {
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    const unsigned lanes = vector->getNumElements();
    const bool has = lanes == 2 || lanes == 3 || lanes == 4 || lanes == 8 || lanes == 16;
    if (!has) return absl::StrCat("vectors of ", lanes);
    if (vector->getElementType()->isPointerTy()) return "vectors of pointers";
  }
  if (!type->isIntOrIntVectorTy()) return "";
  const unsigned bits = type->getScalarSizeInBits();
  const bool has = bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
  return has ? "" : absl::StrCat("integers of ", bits, " bits");
}

std::string WhatIsMissing(const Instruction& instruction) {
  std::string missing = WhatIsMissing(instruction.getType());
  for (const llvm::Use& operand : instruction.operands()) {
    if (missing.empty()) missing = WhatIsMissing(operand->getType());
  }
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!missing.empty() || call == nullptr) return missing;
  const bool has = std::find(std::begin(kIntrinsics), std::end(kIntrinsics),
                             call->getIntrinsicID()) != std::end(kIntrinsics);
  return has ? "" : call->getCalledFunction()->getName().str();
}

}  // namespace

void RewriteForSpirv(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    RewriteMasked(function);
    RewriteExtensions(function);
    RewriteConversions(function);
  }
}

absl::Status CheckSpirvSupported(const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    for (const Instruction& instruction : llvm::instructions(function)) {
      const std::string missing = WhatIsMissing(instruction);
      if (!missing.empty())
        return absl::UnimplementedError(absl::StrCat("LLVM cannot write SPIR-V with ", missing));
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln::codegen
