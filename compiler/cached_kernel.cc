#include "compiler/cached_kernel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/coding/coding.h"

namespace kiln::compiler {

std::string CacheKey(const std::string& kernel_text, const drivers::Target& target,
                     std::vector<std::string> disabled_passes) {
  // Sorted and deduplicated: the order of the names has no meaning.
  std::sort(disabled_passes.begin(), disabled_passes.end());
  disabled_passes.erase(std::unique(disabled_passes.begin(), disabled_passes.end()),
                        disabled_passes.end());
  const std::string without = disabled_passes.empty()
                                  ? ""
                                  : absl::StrCat("\nwithout ", absl::StrJoin(disabled_passes, ","));
  return absl::StrCat(Version(), "\n", target.CacheKey(), without, "\n", kernel_text);
}

std::string EncodeCachedKernel(const CompiledKernel& kernel) {
  ByteWriter out;
  out.Field(kernel.schedule);
  out.Field(kernel.refused_schedule);
  out.Field(kernel.refusal);
  out.PlainField(kernel.compile_seconds);
  out.Field(kernel.image.Serialize());
  return out.Take();
}

std::optional<CompiledKernel> DecodeCachedKernel(const std::string& bytes) {
  ByteReader in(bytes);
  CompiledKernel kernel;
  kernel.schedule = in.Field();
  kernel.refused_schedule = in.Field();
  kernel.refusal = in.Field();
  in.PlainField(&kernel.compile_seconds);
  const std::string image(in.Field());
  // An entry that is not exactly one kernel counts as missing, so the kernel is compiled again.
  if (!in.AtEnd() || !drivers::KernelImage::Deserialize(image, &kernel.image)) return std::nullopt;
  kernel.from_cache = true;
  return kernel;
}

}  // namespace kiln::compiler
