#include "compiler/codegen/math/helper.h"

#include <vector>

#include "compiler/codegen/math/instructions.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

// "f32x16", "i8x1".
std::string TypeName(llvm::Type* type) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return (type->isFPOrFPVectorTy() ? "f" : "i") + std::to_string(type->getScalarSizeInBits()) +
         "x" + std::to_string(vector == nullptr ? 1 : vector->getNumElements());
}

llvm::Function* Helper(const llvm::Function& caller, llvm::Module& module, const std::string& name,
                       llvm::Type* type, size_t count, const HelperBody& body) {
  const std::string full = "kiln." + name + "." + TypeName(type);
  if (llvm::Function* made = module.getFunction(full)) return made;
  const std::vector<llvm::Type*> parameters(count, type);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, parameters, false),
                                          llvm::Function::InternalLinkage, full, module);
  function->setDoesNotThrow();
  AllowInstructionsOf(caller, *function);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  std::vector<llvm::Value*> arguments;
  for (llvm::Argument& argument : function->args()) arguments.push_back(&argument);
  builder.CreateRet(body(builder, arguments));
  return function;
}

}  // namespace

llvm::Value* CallHelper(llvm::IRBuilderBase& builder, const std::string& name,
                        absl::Span<llvm::Value* const> operands, const HelperBody& body) {
  llvm::BasicBlock& block = *builder.GetInsertBlock();
  llvm::Function* helper = Helper(*block.getParent(), *block.getModule(), name,
                                  operands[0]->getType(), operands.size(), body);
  return builder.CreateCall(helper, {operands.begin(), operands.end()});
}

}  // namespace kiln::codegen
