// What the compiler must know of a device to write code for it. Plain data, no device handle.
#ifndef KILN_DRIVERS_INTERFACE_TARGET_H_
#define KILN_DRIVERS_INTERFACE_TARGET_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln::drivers {

struct Target {
  // "x86-64", "nvptx", "amdgcn", "spirv", or "null", for which nothing is compiled.
  std::string architecture;
  // The processor as LLVM names it, for example "sapphirerapids" or "sm_90".
  std::string processor;
  // LLVM feature string: "+avx2,+fma,-f16c" for example.
  std::string features;
  // What of the architecture is used, for people, in words that the driver takes: "avx2,-f16c".
  std::string variant;
  // Bytes of the widest vector register; 4 where lanes are threads.
  int vector_bytes = 16;
  int vector_registers = 16;
  // Hardware threads or multiprocessors that one kernel may use at once.
  int compute_units = 1;
  // Per compute unit, in bytes: first-level data cache or shared memory, and the next private
  // level.
  int64_t near_memory_bytes = 32 << 10;
  int64_t private_cache_bytes = 1 << 20;

  // Whether `features` has +feature.
  bool Has(absl::string_view feature) const;
  // "x86-64/avx2,-f16c", for people.
  std::string Summary() const;
  // Names everything above that changes generated code: part of the kernel cache's key.
  std::string CacheKey() const;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_TARGET_H_
