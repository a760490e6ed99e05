#include "compiler/schedule/directives/fuse.h"

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {

std::string Fuse::Print() const { return StrCat(kName, " ", outer, " ", inner); }

absl::StatusOr<Fuse> Fuse::Parse(absl::Span<const std::string_view> words) {
  auto numbers = ParseNumbers(words, 2, 2);
  if (!numbers.ok()) return numbers.status();
  return Fuse{static_cast<int>((*numbers)[0]), static_cast<int>((*numbers)[1])};
}

}  // namespace kiln::schedule
