#include "compiler/schedule/directives/pad.h"

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {

std::string Pad::Print() const { return StrCat(kName, " ", axis, " ", multiple); }

absl::StatusOr<Pad> Pad::Parse(absl::Span<const std::string_view> words) {
  auto numbers = ParseNumbers(words, 2, 2);
  if (!numbers.ok()) return numbers.status();
  return Pad{static_cast<int>((*numbers)[0]), (*numbers)[1]};
}

}  // namespace kiln::schedule
