// Splits a directive's line into words.
#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_WORDS_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_WORDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// Returns the non-empty pieces of `text` between separators.
std::vector<std::string_view> SplitText(std::string_view text, char separator);

// Parses between `numbers_min` and `numbers_max` integers. Returns INVALID_ARGUMENT, which names
// the word that is not an integer, or says how many are needed.
absl::StatusOr<std::vector<int64_t>> ParseNumbers(absl::Span<const std::string_view> words,
                                                  size_t numbers_min, size_t numbers_max);

// Returns INVALID_ARGUMENT: the directive, in its printed form, does not fit the kernel.
absl::Status BadDirective(std::string_view directive, std::string_view why);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_WORDS_H_
