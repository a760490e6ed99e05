// Work that must not be done in this process: it may end it, or leave it unusable for more.
#ifndef KILN_COMPILER_CODEGEN_CHILD_PROCESS_H_
#define KILN_COMPILER_CODEGEN_CHILD_PROCESS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::codegen {

// What `work` returns in a copy of this process (fork(2)), of which nothing else comes back. The
// copy has the calling thread alone, so `work` must not wait for others or for locks that others
// may hold; glibc's malloc is no such lock, a sanitizer's is. INTERNAL: the copy ended before it
// was done, with what it wrote to stderr, shortened; or it took longer than ten minutes.
// RESOURCE_EXHAUSTED: none could be made, or it ran out of memory. Thread-safe.
absl::StatusOr<std::string> InChildProcess(const std::function<std::string()>& work);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_CHILD_PROCESS_H_
