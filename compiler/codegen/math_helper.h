// Functions of a module that generated code calls. Only math_*.cc may include this.
#ifndef KILN_COMPILER_CODEGEN_MATH_HELPER_H_
#define KILN_COMPILER_CODEGEN_MATH_HELPER_H_

#include <functional>
#include <string>

#include "absl/types/span.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

using HelperBody =
    std::function<llvm::Value*(llvm::IRBuilderBase& builder, absl::Span<llvm::Value* const>)>;

// Calls the module's function of this name for the operands' type, which all share and the result
// has; `body` writes it at the first call. For what branches or loops: the caller's blocks stay as
// they are.
llvm::Value* CallHelper(llvm::IRBuilderBase& builder, const std::string& name,
                        absl::Span<llvm::Value* const> operands, const HelperBody& body);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_HELPER_H_
