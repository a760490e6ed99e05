// Turns a relocatable ELF object into a blob that needs no linking: the part of a linker that
// kernels need.
#ifndef KILN_COMPILER_CODEGEN_X86_FLATTEN_H_
#define KILN_COMPILER_CODEGEN_X86_FLATTEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/codegen/x86/x86.h"

namespace kiln::codegen {

// `object` is a 64-bit little-endian ELF object for x86-64 with one section for each function.
// Read-only sections are laid out as in Blob, and their PC-relative relocations are resolved
// (System V ABI, AMD64 supplement, 4.4). Returns INTERNAL, which names the symbol, section or
// relocation type that would need a real linker.
absl::StatusOr<Blob> FlattenObject(std::string_view object, const std::string& symbol);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_X86_FLATTEN_H_
