// LLVM's linker in process, which makes of an object file what the HSA runtime loads.
#ifndef KILN_COMPILER_CODEGEN_AMDGCN_LINK_H_
#define KILN_COMPILER_CODEGEN_AMDGCN_LINK_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kiln::codegen {

// An ELF shared object of one relocatable object for amdgcn. Thread-safe; links take turns, since
// the linker's state is the process's. INTERNAL: the linker's errors, or files cannot be written in
// /dev/shm nor in the folder for temporary files.
absl::StatusOr<std::string> LinkCodeObject(std::string_view object);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_AMDGCN_LINK_H_
