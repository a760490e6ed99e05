// Runs work in a child process, because it may end its process or leave it in an unusable state.
#ifndef KILN_COMPILER_CODEGEN_SPIRV_CHILD_PROCESS_H_
#define KILN_COMPILER_CODEGEN_SPIRV_CHILD_PROCESS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::codegen {

// Returns the result of `work`, run in a copy of this process (fork(2)); no other effect of it
// returns. The copy has only the calling thread, so `work` must not wait for other threads or for
// locks that they may hold. glibc's malloc is safe, a sanitizer's is not. Returns INTERNAL if the
// copy ended early, with its stderr, shortened, or if it took longer than ten minutes. Returns
// RESOURCE_EXHAUSTED if no process could be created, or it ran out of memory. Thread-safe.
absl::StatusOr<std::string> InChildProcess(const std::function<std::string()>& work);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_SPIRV_CHILD_PROCESS_H_
