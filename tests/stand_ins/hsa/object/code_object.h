// Reads a code object for AMD's GPUs as the HSA runtime does: an ELF shared object whose kernel has
// a descriptor and an entry in the metadata (LLVM's "User Guide for AMDGPU Backend", code object
// V5).
#ifndef KILN_TESTS_STAND_INS_HSA_OBJECT_CODE_OBJECT_H_
#define KILN_TESTS_STAND_INS_HSA_OBJECT_CODE_OBJECT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln::stand_ins::hsa {

struct CodeObject {
  std::string processor;  // "gfx90a"
  std::string symbol;     // of the only kernel's descriptor: "kernel.kd"
  uint32_t group_bytes = 0;
  uint32_t private_bytes = 0;
  uint32_t argument_bytes = 0;
  int wave = 0;
  int threads_max = 0;         // of a block
  int threads = 0;             // of a block, if the kernel requires a number
  std::vector<bool> pointers;  // which arguments are addresses
};

// Returns the properties in the file if all of its parts agree: ELF header, symbols, descriptor,
// metadata. Floating point must round to nearest and keep denormals, arguments must follow each
// other in steps of 8 bytes, and the kernel must use nothing that a dispatch packet of Kiln's
// driver does not provide (hidden arguments, a second dimension, a stack of unknown size).
// INVALID_ARGUMENT names the error.
absl::StatusOr<CodeObject> ReadCodeObject(std::string_view file);

}  // namespace kiln::stand_ins::hsa

#endif  // KILN_TESTS_STAND_INS_HSA_OBJECT_CODE_OBJECT_H_
