#include "compiler/codegen/math/instructions.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {
namespace {

// LLVM keeps unknown string attributes and ignores them.
struct InstructionRow {
  Instruction instruction;
  const char* feature;                                // of the target; null: none
  const char* attribute;                              // of the function
  bool drivers::Capabilities::*capability = nullptr;  // says the same on other machines
};
constexpr InstructionRow kInstructions[] = {
    {Instruction::kFusedMultiplyAdd, "fma", "kiln-fma", &drivers::Capabilities::fma},
    {Instruction::kConvertHalf, "f16c", "kiln-half", &drivers::Capabilities::fp16},
    // Not avx512bf16, whose instruction flushes denormal numbers.
    {Instruction::kRoundBFloat, nullptr, "kiln-bfloat", &drivers::Capabilities::bf16},
    {Instruction::kScale, "avx512vl", "kiln-scale"},
    {Instruction::kWideVectors, "avx512f", "kiln-wide"},
};

}  // namespace

void AllowInstructions(const drivers::Target& target, llvm::Function& function) {
  for (const InstructionRow& row : kInstructions) {
    const bool capable = row.capability != nullptr && target.capabilities.*row.capability;
    const bool has = row.feature != nullptr && target.Has(row.feature);
    if (has || capable) function.addFnAttr(row.attribute);
  }
}

void AllowInstructionsOf(const llvm::Function& from, llvm::Function& function) {
  for (const InstructionRow& row : kInstructions) {
    if (from.hasFnAttribute(row.attribute)) function.addFnAttr(row.attribute);
  }
}

bool MayUse(const llvm::IRBuilderBase& builder, Instruction instruction) {
  const llvm::Function& function = *builder.GetInsertBlock()->getParent();
  for (const InstructionRow& row : kInstructions) {
    if (row.instruction == instruction) return function.hasFnAttribute(row.attribute);
  }
  return false;
}

}  // namespace kiln::codegen
