// LLVM as a writer of SPIR-V, the binary form of OpenCL's and Level Zero's kernels: takes an IR
// module and returns a SPIR-V 1.2 module, which the vendor's driver compiles for its GPU.
// Arithmetic is exactly as in the module: nothing is contracted (ContractionOff).
//
// LLVM 22's backend keeps the state of a module in a static variable, which the next module of the
// process would read, and ends the process at an instruction that it cannot select. So each module
// is written by a copy of this process, which costs 1 to 5 ms (child_process.h).
//
// All functions are thread-safe as long as no two threads share an LLVMContext.
#ifndef KILN_COMPILER_CODEGEN_SPIRV_SPIRV_H_
#define KILN_COMPILER_CODEGEN_SPIRV_SPIRV_H_

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

// Sets the triple and data layout of a new module, which code emitted into it depends on.
void BeginSpirvModule(llvm::Module& module);

// Returns UNIMPLEMENTED if the module has something at which the backend would end its process.
// Returns INTERNAL if the module is invalid, or the backend did not finish. Changes the module
// (rewrite.h).
absl::StatusOr<std::string> EmitSpirv(llvm::Module& module, const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_SPIRV_SPIRV_H_
