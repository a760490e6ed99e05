// The words of a directive's line.
#ifndef KILN_COMPILER_SCHEDULE_WORDS_H_
#define KILN_COMPILER_SCHEDULE_WORDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// The pieces of `text` between separators; empty ones are left out.
std::vector<std::string_view> SplitText(std::string_view text, char separator);

// Between `least` and `most` integers. INVALID_ARGUMENT names the word that is none, or says how
// many are needed.
absl::StatusOr<std::vector<int64_t>> ParseNumbers(absl::Span<const std::string_view> words,
                                                  size_t least, size_t most);

// INVALID_ARGUMENT: the directive, as it prints itself, does not fit the kernel.
absl::Status BadDirective(std::string_view directive, std::string_view why);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_WORDS_H_
