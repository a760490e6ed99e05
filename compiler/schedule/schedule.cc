#include "compiler/schedule/schedule.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"

namespace kiln::schedule {
namespace {

using Words = absl::Span<const std::string_view>;

// Tries the variant's alternatives in turn: their names are the table.
template <size_t kIndex = 0>
absl::StatusOr<Directive> ParseDirective(std::string_view name, Words words) {
  if constexpr (kIndex == std::variant_size_v<Directive>) {
    return absl::InvalidArgumentError(absl::StrCat("there is no directive '", name, "'"));
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
    absl::StrAppend(&out, std::visit([](const auto& d) { return d.Print(); }, directive), "\n");
  }
  return out;
}

absl::StatusOr<Schedule> Parse(std::string_view text) {
  Schedule schedule;
  int number = 0;
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    std::vector<std::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) continue;
    auto directive = ParseDirective(words[0], Words(words).subspan(1));
    if (!directive.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("schedule line ", number, " '", line, "': ", directive.status().message()));
    }
    schedule.directives.push_back(*std::move(directive));
  }
  return schedule;
}

}  // namespace kiln::schedule
