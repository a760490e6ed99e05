#include "compiler/schedule/directives/words.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "compiler/ir/str_cat.h"

namespace kiln::schedule {

std::vector<std::string_view> SplitText(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) pieces.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pieces;
}

absl::StatusOr<std::vector<int64_t>> ParseNumbers(absl::Span<const std::string_view> words,
                                                  size_t numbers_min, size_t numbers_max) {
  if (words.size() < numbers_min || words.size() > numbers_max) {
    return absl::InvalidArgumentError(
        StrCat("takes ", numbers_min, numbers_max == numbers_min ? "" : " or more", " numbers"));
  }
  std::vector<int64_t> numbers;
  for (std::string_view word : words) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(View(word), &number)) {
      return absl::InvalidArgumentError(StrCat("'", word, "' is not a number"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::Status BadDirective(std::string_view directive, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("schedule directive '", directive, "': ", why));
}

}  // namespace kiln::schedule
