// The entries of the kernel cache: the image and the decisions about it.
#ifndef KILN_COMPILER_CACHED_KERNEL_H_
#define KILN_COMPILER_CACHED_KERNEL_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "drivers/interface/target.h"

namespace kiln::compiler {

// Returns a key made from the canonical kernel, target, compiler version, the disabled passes, and
// the setting from Options::tuned if it is not empty; it contains no device numbers.
std::string CacheKey(const std::string& kernel_text, const drivers::Target& target,
                     std::vector<std::string> disabled_passes, const std::string& setting = "");

// Encodes image, schedule, refusals, setting and compile time. `ir` and `digest` follow from the
// key and are not stored.
std::string EncodeCachedKernel(const CompiledKernel& kernel);
// Returns nothing if `bytes` is damaged: then the kernel is compiled again.
std::optional<CompiledKernel> DecodeCachedKernel(const std::string& bytes);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_CACHED_KERNEL_H_
