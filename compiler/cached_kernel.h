// What the kernel cache stores: the image and what was decided about it.
#ifndef KILN_COMPILER_CACHED_KERNEL_H_
#define KILN_COMPILER_CACHED_KERNEL_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "drivers/interface/target.h"

namespace kiln::compiler {

// Canonical kernel, target, compiler version, and the passes that are switched off; free of device
// numbers.
std::string CacheKey(const std::string& kernel_text, const drivers::Target& target,
                     std::vector<std::string> disabled_passes);

// Image, schedule, what was refused and compile time. `ir` and `digest` follow from the key and are
// not stored.
std::string EncodeCachedKernel(const CompiledKernel& kernel);
// Nothing if `bytes` is damaged: then the kernel is compiled again.
std::optional<CompiledKernel> DecodeCachedKernel(const std::string& bytes);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_CACHED_KERNEL_H_
