// What LLVM 22's SPIR-V backend has to be told in other words, and what it is not told at all.
#ifndef KILN_COMPILER_CODEGEN_SPIRV_REWRITE_H_
#define KILN_COMPILER_CODEGEN_SPIRV_REWRITE_H_

#include "absl/status/status.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Changes no result:
//  * zero and sign extensions of truncated numbers become masks and shifts of the result's width,
//    since the backend writes an `and` of operands of two widths for them;
//  * masked loads and stores, gathers and scatters become one access for each lane, in a branch
//    where its mask is not known;
//  * conversions from floats to integers make 0 of NaN, as LLVM's do: SPIR-V leaves that open.
void RewriteForSpirv(llvm::Module& module);

// UNIMPLEMENTED names an integer's or a vector's width, or an intrinsic, that the backend does not
// have and would end its process at.
absl::Status CheckSpirvSupported(const llvm::Module& module);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_SPIRV_REWRITE_H_
