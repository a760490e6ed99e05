#include "compiler/cached_kernel.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/workers/fields.h"

namespace kiln::compiler {

using workers::AppendField;
using workers::AppendPlain;
using workers::TakeField;
using workers::TakePlain;

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
  std::string bytes;
  AppendField(kernel.schedule, &bytes);
  AppendField(kernel.refused_schedule, &bytes);
  AppendField(kernel.refusal, &bytes);
  AppendPlain(kernel.compile_seconds, &bytes);
  AppendField(kernel.image.Serialize(), &bytes);
  return bytes;
}

std::optional<CompiledKernel> DecodeCachedKernel(const std::string& bytes) {
  std::string_view rest = bytes;
  CompiledKernel kernel;
  std::string image;
  // An entry that is not exactly one kernel counts as missing, so the kernel is compiled again.
  if (!TakeField(&rest, &kernel.schedule) || !TakeField(&rest, &kernel.refused_schedule) ||
      !TakeField(&rest, &kernel.refusal) || !TakePlain(&rest, &kernel.compile_seconds) ||
      !TakeField(&rest, &image) || !rest.empty() ||
      !drivers::KernelImage::Deserialize(image, &kernel.image)) {
    return std::nullopt;
  }
  kernel.from_cache = true;
  return kernel;
}

}  // namespace kiln::compiler
