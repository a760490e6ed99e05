#include "drivers/interface/target.h"

#include "absl/strings/str_cat.h"
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
  return absl::StrCat(architecture, ";", processor, ";", features, ";v", vector_bytes, "x",
                      vector_registers, ";u", compute_units, ";m", near_memory_bytes, ";c",
                      private_cache_bytes);
}

}  // namespace kiln::drivers
