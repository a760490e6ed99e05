#include "drivers/interface/target.h"

#include "absl/strings/str_cat.h"

namespace kiln::drivers {

std::string Target::CacheKey() const {
  return absl::StrCat(architecture, ";", processor, ";", features, ";v", vector_bytes, "x",
                      vector_registers, ";u", compute_units, ";m", near_memory_bytes, ";c",
                      private_cache_bytes);
}

}  // namespace kiln::drivers
