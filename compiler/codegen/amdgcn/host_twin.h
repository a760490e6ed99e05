// A twin of a GPU kernel that runs on the host: the same LLVM module as machine code for x86-64, in
// which the caller provides a thread's number, barriers, shuffles and shared memory. It is appended
// to the code object, where loaders ignore it. Used by a stand-in for the HSA runtime, whose
// devices have kHostTwinFeature; no GPU has it.
#ifndef KILN_COMPILER_CODEGEN_AMDGCN_HOST_TWIN_H_
#define KILN_COMPILER_CODEGEN_AMDGCN_HOST_TWIN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace kiln::codegen {

// The argument of the twin, which is called once for each thread of each block.
struct HostTwinCall {
  const void* kernel_arguments;  // as in the dispatch packet
  void* shared;                  // the block's
  uint32_t thread;
  uint32_t block;
  // Returns after all threads of the block have called it.
  void (*barrier)(HostTwinCall* call);
  // Returns the value that a thread of the same subgroup passes to the same call: the one with that
  // number, modulo the subgroup's size.
  uint32_t (*shuffle)(HostTwinCall* call, uint32_t thread, uint32_t value);
};
using HostTwin = void (*)(HostTwinCall*);

// The last bytes of the file. The twin's code is directly before it and must be mapped at a
// multiple of 64. The code is position-independent, with its function at `entry`.
struct HostTwinFooter {
  uint64_t entry;
  uint64_t code_bytes;
  uint64_t argument_bytes;  // that it reads
  uint64_t shared_bytes;
  uint64_t waits;  // 1 if it calls barrier or shuffle
  uint64_t magic;
};
inline constexpr uint64_t kHostTwinMagic = 0x4e4957544e4c494bULL;  // "KILNTWIN"

// Appends the twin of the kernel `symbol` to the code object. Requires: LLVM's AMDGPU backend has
// not run on `module` yet. Destroys the module. Returns INTERNAL if a twin does not support
// something in the module.
absl::Status AddHostTwin(llvm::Module& module, const std::string& symbol, std::string* object);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_AMDGCN_HOST_TWIN_H_
