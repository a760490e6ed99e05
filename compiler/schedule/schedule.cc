#include "compiler/schedule/schedule.h"

#include <algorithm>

#include "absl/types/span.h"
#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {
namespace {

using Words = absl::Span<const std::string_view>;

// Tries the variant's alternatives in turn, by their names.
template <size_t kIndex = 0>
absl::StatusOr<Directive> ParseDirective(std::string_view name, Words words) {
  if constexpr (kIndex == std::variant_size_v<Directive>) {
    return absl::InvalidArgumentError(StrCat("unknown directive '", name, "'"));
  } else {
    using Type = std::variant_alternative_t<kIndex, Directive>;
    if (name != Type::kName) return ParseDirective<kIndex + 1>(name, words);
    auto parsed = Type::Parse(words);
    if (!parsed.ok()) return parsed.status();
    return Directive(*std::move(parsed));
  }
}

}  // namespace

std::string Print(const Schedule& schedule) {
  std::string out;
  for (const Directive& directive : schedule.directives) {
    StrAppend(&out, std::visit([](const auto& d) { return d.Print(); }, directive), "\n");
  }
  return out;
}

absl::StatusOr<Schedule> Parse(std::string_view text) {
  Schedule schedule;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const std::vector<std::string_view> words = SplitText(line, ' ');
    if (words.empty()) continue;
    auto directive = ParseDirective(words[0], Words(words).subspan(1));
    if (!directive.ok()) {
      return absl::InvalidArgumentError(
          StrCat("schedule line ", number, " '", line, "': ", directive.status().message()));
    }
    schedule.directives.push_back(*std::move(directive));
  }
  return schedule;
}

}  // namespace kiln::schedule
