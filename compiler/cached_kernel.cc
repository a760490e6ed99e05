#include "compiler/cached_kernel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/coding/coding.h"
#include "proto/digest/sha256.h"

namespace kiln::compiler {

std::string CacheKey(const std::string& kernel_text, const drivers::Target& target,
                     std::vector<std::string> disabled_passes, const std::string& setting) {
  // Sorted and deduplicated: the order of the names has no meaning.
  std::sort(disabled_passes.begin(), disabled_passes.end());
  disabled_passes.erase(std::unique(disabled_passes.begin(), disabled_passes.end()),
                        disabled_passes.end());
  const std::string without = disabled_passes.empty()
                                  ? ""
                                  : absl::StrCat("\nwithout ", absl::StrJoin(disabled_passes, ","));
  // Its digest, because the text is untrusted and has line feeds.
  const std::string tuned = setting.empty() ? "" : absl::StrCat("\nsetting ", Sha256Hex(setting));
  return absl::StrCat(Version(), "\n", target.CacheKey(), without, tuned, "\n", kernel_text);
}

std::string EncodeCachedKernel(const CompiledKernel& kernel) {
  ByteWriter out;
  out.Field(kernel.schedule);
  out.Field(kernel.refused_schedule);
  out.Field(kernel.refusal);
  out.PlainField(kernel.compile_seconds);
  out.Field(kernel.image.Serialize());
  if (!kernel.setting.empty()) {
    out.Field(kernel.setting);
    out.Field(kernel.setting_refusal);
    out.Field(kernel.setting_ignored);
  }
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
  if (in.ok() && !in.AtEnd()) {
    kernel.setting = in.Field();
    kernel.setting_refusal = in.Field();
    kernel.setting_ignored = in.Field();
  }
  // An entry that is not exactly one kernel counts as missing, so the kernel is compiled again.
  if (!in.AtEnd() || !drivers::KernelImage::Deserialize(image, &kernel.image)) return std::nullopt;
  kernel.from_cache = true;
  return kernel;
}

}  // namespace kiln::compiler
