#include "compiler/cached_kernel.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln::compiler {
namespace {

void AppendString(std::string_view text, std::string* out) {
  const uint64_t size = text.size();
  out->append(reinterpret_cast<const char*>(&size), sizeof size);
  out->append(text);
}

bool TakeString(std::string_view* in, std::string* text) {
  uint64_t size = 0;
  // Entries come from a file, so every length is checked against what is left.
  if (in->size() < sizeof size) return false;
  std::memcpy(&size, in->data(), sizeof size);
  in->remove_prefix(sizeof size);
  if (in->size() < size) return false;
  text->assign(in->substr(0, size));
  in->remove_prefix(size);
  return true;
}

}  // namespace

std::string CacheKey(const std::string& kernel_text, const drivers::Target& target,
                     std::vector<std::string> disabled_passes) {
  // A set: the order in which they were named means nothing.
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
  AppendString(kernel.schedule, &bytes);
  AppendString(kernel.refused_schedule, &bytes);
  AppendString(kernel.refusal, &bytes);
  AppendString(std::string_view(reinterpret_cast<const char*>(&kernel.compile_seconds),
                                sizeof kernel.compile_seconds),
               &bytes);
  AppendString(kernel.image.Serialize(), &bytes);
  return bytes;
}

std::optional<CompiledKernel> DecodeCachedKernel(const std::string& bytes) {
  std::string_view rest = bytes;
  CompiledKernel kernel;
  std::string seconds, image;
  // An entry that is not exactly one kernel counts as missing, so the kernel is compiled again.
  if (!TakeString(&rest, &kernel.schedule) || !TakeString(&rest, &kernel.refused_schedule) ||
      !TakeString(&rest, &kernel.refusal) || !TakeString(&rest, &seconds) ||
      !TakeString(&rest, &image) || !rest.empty() ||
      seconds.size() != sizeof kernel.compile_seconds) {
    return std::nullopt;
  }
  std::memcpy(&kernel.compile_seconds, seconds.data(), seconds.size());
  if (!drivers::KernelImage::Deserialize(image, &kernel.image)) return std::nullopt;
  kernel.from_cache = true;
  return kernel;
}

}  // namespace kiln::compiler
