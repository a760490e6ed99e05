#include "compiler/schedule/directives/skip.h"

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {

std::string Skip::Print() const { return StrCat(kName, " ", stage); }

absl::StatusOr<Skip> Skip::Parse(absl::Span<const std::string_view> words) {
  auto numbers = ParseNumbers(words, 1, 1);
  if (!numbers.ok()) return numbers.status();
  return Skip{static_cast<int>((*numbers)[0])};
}

}  // namespace kiln::schedule
