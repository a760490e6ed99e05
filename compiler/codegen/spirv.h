// LLVM as a writer of SPIR-V, the binary form of OpenCL's and Level Zero's kernels: an IR module
// in, a module of SPIR-V 1.2 out, which the vendor's driver compiles for its GPU. Arithmetic is
// what the module says: nothing is contracted (ContractionOff).
//
// LLVM 22's backend keeps what it knows of a module in a static variable, which the next module of
// the process would read, and ends the process at what it cannot select. So each module is written
// by a copy of this process, which costs 1 to 5 ms (child_process.h).
//
// All functions are thread-safe as long as no two threads share an LLVMContext.
#ifndef KILN_COMPILER_CODEGEN_SPIRV_H_
#define KILN_COMPILER_CODEGEN_SPIRV_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "drivers/interface/target.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Target::architecture.
inline constexpr std::string_view kSpirvArchitecture = "spirv64";

// Address spaces, as OpenCL numbers them.
inline constexpr unsigned kSpirvGlobal = 1, kSpirvConstant = 2, kSpirvShared = 3;

// Gives a new module the triple and the layout of data, which emission into it looks at.
void BeginSpirvModule(llvm::Module& module);

// UNIMPLEMENTED: the module has what the backend would end its process at. INTERNAL: the module is
// invalid, or the backend did not come to an end. The module is changed (spirv_rewrite.h).
absl::StatusOr<std::string> EmitSpirv(llvm::Module& module, const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_SPIRV_H_
