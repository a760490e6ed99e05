// Functions that generated code calls within its module. Internal to codegen/math.
#ifndef KILN_COMPILER_CODEGEN_MATH_HELPER_H_
#define KILN_COMPILER_CODEGEN_MATH_HELPER_H_

#include <functional>
#include <string>

#include "absl/types/span.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

using HelperBody =
    std::function<llvm::Value*(llvm::IRBuilderBase& builder, absl::Span<llvm::Value* const>)>;

// Calls the module's function of this name for the operands' type, which is the same for all of
// them and for the result; `body` writes the function at the first call. For code with branches or
// loops: it leaves the caller's blocks unchanged.
llvm::Value* CallHelper(llvm::IRBuilderBase& builder, const std::string& name,
                        absl::Span<llvm::Value* const> operands, const HelperBody& body);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_HELPER_H_
