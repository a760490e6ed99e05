// LLVM as a writer of PTX, NVIDIA's assembly for a virtual machine: takes an IR module and returns
// text, which the CUDA driver assembles for its GPU. Arithmetic is exactly as in the module:
// nothing is contracted or flushed, division and square root are correctly rounded.
//
// All functions are thread-safe as long as no two threads share an LLVMContext.
#ifndef KILN_COMPILER_CODEGEN_NVPTX_PTX_H_
#define KILN_COMPILER_CODEGEN_NVPTX_PTX_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "drivers/interface/target.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Target::architecture.
inline constexpr std::string_view kPtxArchitecture = "nvptx64";

// The address spaces of LLVM's NVPTX backend.
enum PtxAddressSpace : unsigned { kPtxGlobal = 1, kPtxShared = 3 };

// target.processor is "sm_90", for example; target.features is the version of PTX ("+ptx78"), which
// must support the processor. Sets the module's triple and data layout. Returns INTERNAL if the
// module is invalid, or LLVM has no such backend. Returns INVALID_ARGUMENT if the target is of
// another architecture, or LLVM does not know its processor.
absl::StatusOr<std::string> EmitPtx(llvm::Module& module, const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_NVPTX_PTX_H_
