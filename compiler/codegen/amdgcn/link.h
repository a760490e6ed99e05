// LLVM's linker in this process: turns an object file into a code object for the HSA runtime.
#ifndef KILN_COMPILER_CODEGEN_AMDGCN_LINK_H_
#define KILN_COMPILER_CODEGEN_AMDGCN_LINK_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kiln::codegen {

// Returns an ELF shared object made of one relocatable object for amdgcn. Thread-safe; links run
// one at a time, since the linker's state is global. Returns INTERNAL with the linker's errors, or
// if files can be written neither to /dev/shm nor to the folder for temporary files.
absl::StatusOr<std::string> LinkCodeObject(std::string_view object);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_AMDGCN_LINK_H_
