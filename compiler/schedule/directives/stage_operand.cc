#include "compiler/schedule/directives/stage_operand.h"

#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {
namespace {

std::string PrintDimension(const StageOperand::Dimension& dimension) {
  if (dimension.size() == 1 && dimension[0].coefficient == 1) return StrCat(dimension[0].axis);
  return absl::StrJoin(dimension, "+", [](std::string* out, const StageOperand::Term& term) {
    StrAppend(out, term.coefficient, "*", term.axis);
  });
}

absl::StatusOr<StageOperand::Term> ParseTerm(std::string_view word) {
  std::vector<std::string_view> factors = SplitText(word, '*');
  auto numbers = ParseNumbers(factors, 1, 2);
  if (!numbers.ok()) return numbers.status();
  const int axis = static_cast<int>(numbers->back());
  return StageOperand::Term{numbers->size() == 2 ? numbers->front() : 1, axis};
}

absl::StatusOr<StageOperand::Dimension> ParseDimension(std::string_view word) {
  StageOperand::Dimension dimension;
  for (std::string_view part : SplitText(word, '+')) {
    auto term = ParseTerm(part);
    if (!term.ok()) return term.status();
    dimension.push_back(*term);
  }
  return dimension;
}

}  // namespace

std::string StageOperand::Print() const {
  std::string out = StrCat(kName, " ", stage, " ", operand, " ", at, " ", lanes);
  for (const Dimension& dimension : layout) StrAppend(&out, " ", PrintDimension(dimension));
  return out;
}

absl::StatusOr<StageOperand> StageOperand::Parse(absl::Span<const std::string_view> words) {
  if (words.size() < 5) {
    return absl::InvalidArgumentError("stage takes a stage, operand, axis, lanes and dimensions");
  }
  auto numbers = ParseNumbers(words.subspan(0, 4), 4, 4);
  if (!numbers.ok()) return numbers.status();
  StageOperand result{static_cast<int>((*numbers)[0]),
                      static_cast<int>((*numbers)[1]),
                      static_cast<int>((*numbers)[2]),
                      static_cast<int>((*numbers)[3]),
                      {}};
  for (std::string_view word : words.subspan(4)) {
    auto dimension = ParseDimension(word);
    if (!dimension.ok()) return dimension.status();
    result.layout.push_back(*std::move(dimension));
  }
  return result;
}

}  // namespace kiln::schedule
