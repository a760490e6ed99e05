// LLVM as a compiler for AMD's GPUs: takes an IR module and returns a code object (an ELF shared
// object of version 5 of AMDHSA's convention, with kernel descriptors and metadata), which the HSA
// runtime loads. Arithmetic is exactly as in the module: nothing is contracted or flushed, division
// and square root are correctly rounded, and no device library is linked.
//
// All functions are thread-safe as long as no two threads share an LLVMContext.
#ifndef KILN_COMPILER_CODEGEN_AMDGCN_AMDGCN_H_
#define KILN_COMPILER_CODEGEN_AMDGCN_AMDGCN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "drivers/interface/target.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Target::architecture.
inline constexpr std::string_view kAmdgcnArchitecture = "amdgcn";

// A target feature that no processor has: code objects for such a target include a twin for the
// host (host_twin.h).
inline constexpr std::string_view kHostTwinFeature = "kiln-host-twin";

// The address spaces of LLVM's AMDGPU backend.
enum AmdgcnAddressSpace : unsigned { kAmdgcnGlobal = 1, kAmdgcnShared = 3, kAmdgcnPrivate = 5 };

// Gives an empty module the backend's triple and data layout, which determine the address spaces of
// its variables.
void PrepareAmdgcnModule(llvm::Module& module);

// target.processor is "gfx90a", for example; target.features are those of its target ID
// ("+sramecc,-xnack"). Threads run in lockstep in subgroups of target.limits.threads_per_subgroup,
// 32 or 64. Returns INTERNAL if the module is invalid, or if LLVM's output does not link. Returns
// INVALID_ARGUMENT if the target is of another architecture, LLVM does not know the processor, or
// it has no such subgroups.
absl::StatusOr<std::string> EmitCodeObject(llvm::Module& module, const drivers::Target& target);

// Returns the instructions of all functions of a code object, one a line after its offset in .text.
absl::StatusOr<std::string> DisassembleCodeObject(std::string_view object,
                                                  const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_AMDGCN_AMDGCN_H_
