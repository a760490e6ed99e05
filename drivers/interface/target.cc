#include "drivers/interface/target.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace kiln::drivers {

bool Target::Has(absl::string_view feature) const {
  for (absl::string_view word : absl::StrSplit(features, ',')) {
    if (word == absl::StrCat("+", feature)) return true;
  }
  return false;
}

std::string Target::Summary() const {
  return variant.empty() ? architecture : absl::StrCat(architecture, "/", variant);
}

std::string Target::CacheKey() const {
  const Limits& l = limits;
  const Capabilities& c = capabilities;
  std::string can;
  for (const auto& [has, name] :
       {std::pair(c.fma, "fma"), std::pair(c.fp64, "fp64"), std::pair(c.fp16, "fp16"),
        std::pair(c.bf16, "bf16"), std::pair(c.matrix, "matrix"),
        std::pair(c.async_copies, "async")}) {
    if (has) absl::StrAppend(&can, "+", name);
  }
  const std::string finished =
      finisher.driver.empty()
          ? ""
          : absl::StrCat(";", finisher.driver, ";", finisher.device, ";", finisher.version);
  return absl::StrCat(architecture, ";", processor, ";", features, ";v", l.vector_bytes, "x",
                      l.vector_registers, ";u", l.compute_units, ";m", l.near_memory_bytes, ";c",
                      l.private_cache_bytes, ";t", l.threads_per_block, "x", l.threads_per_subgroup,
                      "x", l.threads_per_unit, "x", l.threads_per_shuffle, ";b", l.bytes_per_access,
                      ";r", l.register_bytes_per_unit, ";s", l.shared_bytes_per_block, ";l",
                      l.local_bytes_max, ";g", l.arguments_max, ";a", l.buffer_alignment, ";", can,
                      ";", costs.Key(), finished);
}

std::string Target::HardwareKey() const {
  const Limits& l = limits;
  std::vector<absl::string_view> words = absl::StrSplit(features, ',', absl::SkipEmpty());
  // The version of PTX is that of the language in which Kiln writes kernels.
  std::erase_if(words, [](absl::string_view word) { return absl::StartsWith(word, "+ptx"); });
  // Without threads_per_block, which is lowered for programs whose kernels need more registers.
  return absl::StrCat(architecture, ";", processor, ";", absl::StrJoin(words, ","), ";u",
                      l.compute_units, ";v", l.vector_bytes, "x", l.vector_registers, ";t",
                      l.threads_per_subgroup, "x", l.threads_per_unit, ";s",
                      l.shared_bytes_per_block, ";m", l.near_memory_bytes, ";c",
                      l.private_cache_bytes);
}

}  // namespace kiln::drivers
