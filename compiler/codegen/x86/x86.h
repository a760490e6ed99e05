// LLVM as an assembler for x86-64: takes an IR module and returns machine code. No IR passes run:
// the instructions are selected for the module as it is, and all important decisions were made
// before.
//
// All functions are thread-safe as long as no two threads share an LLVMContext.
#ifndef KILN_COMPILER_CODEGEN_X86_X86_H_
#define KILN_COMPILER_CODEGEN_X86_X86_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "drivers/interface/target.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Target::architecture.
inline constexpr std::string_view kX86Architecture = "x86-64";

// Position-independent code that needs no linking: first the constants, then the function at
// `entry`, then the functions it calls. So [0, entry) is data and [entry, code.size()) is text.
// Every section starts at a multiple of 64 (or more, if it asks for it), counted from the start of
// `code`, which must itself be mapped at a multiple of 64.
struct Blob {
  std::string code;
  int64_t entry = 0;
};

// Compiles the function `symbol` of `module` and everything that it refers to; sets the module's
// triple and data layout. Vectors may use the widest registers of target.features. Returns
// INTERNAL, with the reason in the message, if the module is invalid, or if the code refers to a
// symbol that the module does not define, to writable data or to thread-local storage. Returns
// INVALID_ARGUMENT if the target is not an x86-64 one.
absl::StatusOr<Blob> EmitBlob(llvm::Module& module, const drivers::Target& target,
                              const std::string& symbol);

// Returns Intel syntax, one instruction a line after its offset in `code`, with branch targets as
// labels and references to constants as comments. For the constants in [0, entry) it gives only
// their size.
absl::StatusOr<std::string> Disassemble(std::string_view code, int64_t entry,
                                        const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_X86_X86_H_
