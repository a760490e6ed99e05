#include "compiler/schedule/words.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace kiln::schedule {

absl::StatusOr<std::vector<int64_t>> ParseNumbers(absl::Span<const std::string_view> words,
                                                  size_t least, size_t most) {
  if (words.size() < least || words.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes ", least, most == least ? "" : " or more", " numbers"));
  }
  std::vector<int64_t> numbers;
  for (std::string_view word : words) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) {
      return absl::InvalidArgumentError(absl::StrCat("'", word, "' is not a number"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace kiln::schedule
