#include "compiler/schedule/directives/split.h"

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {

std::string Split::Print() const { return StrCat(kName, " ", axis, " ", factor); }

absl::StatusOr<Split> Split::Parse(absl::Span<const std::string_view> words) {
  auto numbers = ParseNumbers(words, 2, 2);
  if (!numbers.ok()) return numbers.status();
  return Split{static_cast<int>((*numbers)[0]), (*numbers)[1]};
}

}  // namespace kiln::schedule
