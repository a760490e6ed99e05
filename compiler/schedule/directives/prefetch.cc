#include "compiler/schedule/directives/prefetch.h"

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {

std::string Prefetch::Print() const {
  return StrCat(kName, " ", stage, " ", buffer, " ", axis, " ", steps);
}

absl::StatusOr<Prefetch> Prefetch::Parse(absl::Span<const std::string_view> words) {
  auto numbers = ParseNumbers(words, 4, 4);
  if (!numbers.ok()) return numbers.status();
  const std::vector<int64_t>& n = *numbers;
  return Prefetch{static_cast<int>(n[0]), static_cast<int>(n[1]), static_cast<int>(n[2]), n[3]};
}

}  // namespace kiln::schedule
