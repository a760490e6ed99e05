// LLVM as a writer of PTX, NVIDIA's assembly for a virtual machine: an IR module in, text out,
// which the CUDA driver assembles for its GPU. Arithmetic is what the module says: nothing is
// contracted or flushed, division and square root are correctly rounded.
//
// All functions are thread-safe as long as no two threads share an LLVMContext.
#ifndef KILN_COMPILER_CODEGEN_PTX_H_
#define KILN_COMPILER_CODEGEN_PTX_H_

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

// Where LLVM's NVPTX backend has its kinds of memory.
enum PtxAddressSpace : unsigned { kPtxGlobal = 1, kPtxShared = 3 };

// target.processor is "sm_90", target.features the version of PTX ("+ptx78"), which must know the
// processor. Sets the module's triple and data layout. INTERNAL: the module is invalid, or LLVM has
// no such backend. INVALID_ARGUMENT: the target is another architecture's, or a processor that LLVM
// does not know.
absl::StatusOr<std::string> EmitPtx(llvm::Module& module, const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_PTX_H_
