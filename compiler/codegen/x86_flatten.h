// From a relocatable ELF object to a blob with nothing left to link: the part of a linker that
// kernels need.
#ifndef KILN_COMPILER_CODEGEN_X86_FLATTEN_H_
#define KILN_COMPILER_CODEGEN_X86_FLATTEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/codegen/x86.h"

namespace kiln::codegen {

// `object` is a 64-bit little-endian ELF object for x86-64 whose functions have a section each.
// Read-only sections are laid out as Blob says and their PC-relative relocations resolved (System V
// ABI, AMD64 supplement, 4.4). INTERNAL names the symbol, section or relocation type that would
// need a real linker.
absl::StatusOr<Blob> FlattenObject(std::string_view object, const std::string& symbol);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_X86_FLATTEN_H_
