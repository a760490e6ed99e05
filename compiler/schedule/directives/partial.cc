#include "compiler/schedule/directives/partial.h"

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {

std::string Partial::Print() const { return StrCat(kName, " ", axis); }

absl::StatusOr<Partial> Partial::Parse(absl::Span<const std::string_view> words) {
  auto numbers = ParseNumbers(words, 1, 1);
  if (!numbers.ok()) return numbers.status();
  return Partial{static_cast<int>((*numbers)[0])};
}

}  // namespace kiln::schedule
