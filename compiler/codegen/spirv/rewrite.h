// Rewrites code that LLVM 22's SPIR-V backend does not support, and finds code that it cannot
// handle.
#ifndef KILN_COMPILER_CODEGEN_SPIRV_REWRITE_H_
#define KILN_COMPILER_CODEGEN_SPIRV_REWRITE_H_

#include "absl/status/status.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Changes no result:
//  * zero and sign extensions of truncated numbers become masks and shifts of the result's width,
//    since the backend writes an `and` with operands of two widths for them;
//  * masked loads and stores, gathers and scatters become one access for each lane, in a branch
//    where its mask is not known;
//  * conversions from floats to integers give 0 for NaN, as LLVM's do: SPIR-V does not define that.
void RewriteForSpirv(llvm::Module& module);

// Returns UNIMPLEMENTED, which names the integer width, vector width or intrinsic that the backend
// does not have and at which it would end its process.
absl::Status CheckSpirvSupported(const llvm::Module& module);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_SPIRV_REWRITE_H_
