// A twin of a GPU's kernel that the host runs: the same LLVM module, in which a thread's number,
// barriers, shuffles and shared memory are asked of whoever calls, as machine code for x86-64. It
// stands behind the code object's end, where loaders do not look. Made for a stand-in of the HSA
// runtime, whose devices have kHostTwinFeature; no GPU has it.
#ifndef KILN_COMPILER_CODEGEN_AMDGCN_HOST_TWIN_H_
#define KILN_COMPILER_CODEGEN_AMDGCN_HOST_TWIN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace kiln::codegen {

// What the twin is called with, once for each thread of each block.
struct HostTwinCall {
  const void* kernel_arguments;  // as the dispatch packet has them
  void* shared;                  // of the block
  uint32_t thread;
  uint32_t block;
  // Returns when all threads of the block have called it.
  void (*barrier)(HostTwinCall* call);
  // The value of the thread with that number modulo the subgroup's size, in the same subgroup,
  // which calls it here as well.
  uint32_t (*shuffle)(HostTwinCall* call, uint32_t thread, uint32_t value);
};
using HostTwin = void (*)(HostTwinCall*);

// The file's last bytes. The twin's code, which has to be mapped at a multiple of 64, stands in
// front of it: position-independent, its function at `entry`.
struct HostTwinFooter {
  uint64_t entry;
  uint64_t code_bytes;
  uint64_t argument_bytes;  // that it reads
  uint64_t shared_bytes;
  uint64_t waits;  // 1 if it calls barrier or shuffle
  uint64_t magic;
};
inline constexpr uint64_t kHostTwinMagic = 0x4e4957544e4c494bULL;  // "KILNTWIN"

// Of the kernel `symbol` in `module`, as it is before LLVM's AMDGPU backend has run; destroys the
// module. Appends the twin to the code object. INTERNAL: the module has what no twin has.
absl::Status AddHostTwin(llvm::Module& module, const std::string& symbol, std::string* object);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_AMDGCN_HOST_TWIN_H_
