#include "compiler/ops/rules/einsum.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "compiler/ir/quoted.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::Shape;

// The letters of one operand or of the result; kEllipsis represents "...".
constexpr Label kEllipsis = 0;
using Term = std::vector<Label>;

template <typename... Parts>
absl::Status Error(std::string_view equation, const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat("einsum's equation ", Quoted(equation), ": ", parts...));
}

absl::StatusOr<Term> ParseTerm(std::string_view equation, std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (text.substr(i, 3) == "...") {
      if (std::count(term.begin(), term.end(), kEllipsis) > 0) {
        return Error(equation, "two ellipses in one operand");
      }
      term.push_back(kEllipsis);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      term.push_back(c);
    } else {
      return Error(equation, "'", std::string(1, c),
                   "' is not a letter; use letters, \"...\", \",\" and \"->\"");
    }
  }
  return term;
}

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string NameOf(Label label) {
  return label > 0 ? StrCat("'", std::string(1, static_cast<char>(label)), "'") : "an ellipsis";
}

// Names the operand's dimensions: those without a letter belong to the ellipsis.
absl::StatusOr<std::vector<Label>> NameDimensions(std::string_view equation, const Term& term,
                                                  const Shape& shape) {
  const bool has_ellipsis = std::count(term.begin(), term.end(), kEllipsis) > 0;
  const size_t letters = term.size() - (has_ellipsis ? 1 : 0);
  if (has_ellipsis ? shape.size() < letters : shape.size() != letters) {
    return Error(equation, letters, " letters for an operand of shape ", ToString(shape),
                 has_ellipsis ? "" : "; each dimension needs one, or \"...\"");
  }
  std::vector<Label> labels;
  for (const Label label : term) {
    if (label != kEllipsis) labels.push_back(label);
    for (size_t i = shape.size() - letters; label == kEllipsis && i > 0; --i) {
      // Counted from the end, so that ellipses of different lengths broadcast like shapes.
      labels.push_back(-static_cast<Label>(i));
    }
  }
  return labels;
}

// Checks the sizes of a letter that is repeated in one operand, for its diagonal.
absl::Status CheckDiagonals(std::string_view equation, const std::vector<Label>& labels,
                            const Shape& shape) {
  std::map<Label, int64_t> sizes;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t size = sizes.try_emplace(labels[i], shape[i]).first->second;
    if (size == shape[i]) continue;
    return Error(equation, NameOf(labels[i]), " is repeated for sizes ", size, " and ", shape[i],
                 " of one operand; a diagonal needs equal ones");
  }
  return absl::OkStatus();
}

absl::Status AddSizes(std::string_view equation, const std::vector<Label>& labels,
                      const Shape& shape, std::map<Label, int64_t>& sizes) {
  for (size_t i = 0; i < labels.size(); ++i) {
    int64_t& size = sizes.try_emplace(labels[i], shape[i]).first->second;
    // A size of 1 broadcasts.
    if (size == shape[i] || shape[i] == 1) continue;
    if (size != 1) {
      return Error(equation, NameOf(labels[i]), " names sizes ", size, " and ", shape[i],
                   "; they must be equal, or 1");
    }
    size = shape[i];
  }
  return absl::OkStatus();
}

// Returns the dimensions of the ellipsis, of all operands together.
std::vector<Label> EllipsisLabels(const std::map<Label, int64_t>& sizes) {
  std::vector<Label> labels;
  for (const auto& [label, size] : sizes) {
    if (label < 0) labels.push_back(label);
  }
  return labels;  // a map's order: the most negative, which is the first dimension, first
}

std::vector<Label> ImplicitResult(const EinsumEquation& parsed) {
  std::map<Label, int> uses;
  for (const auto& operand : parsed.operands) {
    for (const Label label : operand) ++uses[label];
  }
  std::vector<Label> result = EllipsisLabels(parsed.sizes);
  for (const auto& [label, count] : uses) {
    // The map is ordered alphabetically.
    if (label > 0 && count == 1) result.push_back(label);
  }
  return result;
}

absl::StatusOr<std::vector<Label>> ExplicitResult(std::string_view equation, const Term& term,
                                                  const EinsumEquation& parsed) {
  std::vector<Label> result;
  for (const Label label : term) {
    if (label == kEllipsis) {
      const std::vector<Label> labels = EllipsisLabels(parsed.sizes);
      result.insert(result.end(), labels.begin(), labels.end());
      continue;
    }
    if (!parsed.sizes.contains(label)) {
      return Error(equation, NameOf(label), " is in the result but in no operand");
    }
    if (std::count(result.begin(), result.end(), label) > 0) {
      return Error(equation, NameOf(label), " is in the result twice");
    }
    result.push_back(label);
  }
  return result;
}

}  // namespace

Shape EinsumEquation::ResultShape() const {
  Shape shape;
  for (const Label label : result) shape.push_back(sizes.at(label));
  return shape;
}

absl::StatusOr<EinsumEquation> ParseEinsum(std::string_view equation,
                                           absl::Span<const Shape> shapes) {
  const size_t arrow = equation.find("->");
  const auto texts = SplitAtCommas(equation.substr(0, arrow));
  if (texts.size() != shapes.size()) {
    return Error(equation, texts.size(), " operands are named, but ", shapes.size(), " are given");
  }
  if (shapes.size() > kOperandsMax) {
    return Error(equation, shapes.size(), " operands; at most ", kOperandsMax,
                 " are allowed, so split the equation");
  }
  EinsumEquation parsed;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto term = ParseTerm(equation, texts[i]);
    if (!term.ok()) return term.status();
    const auto labels = NameDimensions(equation, *term, shapes[i]);
    if (!labels.ok()) return labels.status();
    const absl::Status square = CheckDiagonals(equation, *labels, shapes[i]);
    if (!square.ok()) return square;
    const absl::Status fits = AddSizes(equation, *labels, shapes[i], parsed.sizes);
    if (!fits.ok()) return fits;
    parsed.operands.push_back(*labels);
  }
  if (arrow == std::string_view::npos) {
    parsed.result = ImplicitResult(parsed);
    return parsed;
  }
  const auto term = ParseTerm(equation, equation.substr(arrow + 2));
  if (!term.ok()) return term.status();
  const auto result = ExplicitResult(equation, *term, parsed);
  if (!result.ok()) return result.status();
  parsed.result = *result;
  return parsed;
}

}  // namespace kiln::ops
