#include "server/web/query.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/quoted.h"

namespace kiln::web {
namespace {

// Decodes "a%20b+c" (application/x-www-form-urlencoded).
std::optional<std::string> Decoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      if (i + 2 >= text.size() || !absl::ascii_isxdigit(text[i + 1]) ||
          !absl::ascii_isxdigit(text[i + 2]))
        return std::nullopt;
      decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    }
  }
  return decoded;
}

absl::Status BadQuery(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("query: ", why));
}

}  // namespace

absl::StatusOr<Query> Query::Parse(absl::string_view text,
                                   std::initializer_list<absl::string_view> known) {
  Query query;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '&', absl::SkipEmpty());
  for (const absl::string_view part : parts) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto value = Decoded(pair.second);
    if (!value || !absl::StrContains(part, '='))
      return BadQuery(absl::StrCat(Quoted(std::string(part)), " is not NAME=VALUE"));
    if (std::find(known.begin(), known.end(), pair.first) == known.end()) {
      return BadQuery(absl::StrCat("there is no ", Quoted(std::string(pair.first)), "; allowed: ",
                                   known.size() == 0 ? "nothing" : absl::StrJoin(known, ", ")));
    }
    if (!query.values_.try_emplace(std::string(pair.first), *value).second)
      return BadQuery(absl::StrCat(Quoted(std::string(pair.first)), " is given twice"));
  }
  return query;
}

std::string Query::Text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

absl::StatusOr<int64_t> Query::Number(const std::string& name, int64_t unless_given, int64_t min,
                                      int64_t max) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return unless_given;
  int64_t number = 0;
  if (absl::SimpleAtoi(found->second, &number) && number >= min && number <= max) return number;
  return BadQuery(
      absl::StrCat(name, " is a number from ", min, " to ", max, ", not ", Quoted(found->second)));
}

}  // namespace kiln::web
