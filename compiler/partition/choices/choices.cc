#include "compiler/partition/choices/choices.h"

#include <charconv>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/quoted.h"
#include "compiler/ir/walk.h"
#include "proto/digest/sha256.h"

namespace kiln::partition {

namespace {

constexpr std::string_view kChoiceNames[] = {"apart", "join",      "keep",
                                             "split", "recompute", "store"};
constexpr std::string_view kFirstLine = "choices 1";
static_assert(kChoicesVersion == 1);

uint8_t BitOf(Choice choice) { return static_cast<uint8_t>(1u << static_cast<unsigned>(choice)); }

absl::Status ErrorAt(int line, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", std::string(why)));
}

// Reads "split %40".
absl::Status ReadChoice(std::string_view line, int number, Choices* choices) {
  const size_t blank = line.find(" %");
  const std::string_view name = line.substr(0, blank);
  for (size_t i = 0; i < std::size(kChoiceNames) && blank != std::string_view::npos; ++i) {
    if (kChoiceNames[i] != name) continue;
    const std::string_view digits = line.substr(blank + 2);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0 ||
        value > std::numeric_limits<int32_t>::max())
      return ErrorAt(number, absl::StrCat(Quoted(digits), " is not the number of a value"));
    const auto choice = static_cast<Choice>(i);
    if (choices->values.contains({value, Opposite(choice)})) {
      return ErrorAt(number, absl::StrCat("the value %", value, " has the opposite choice, too"));
    }
    choices->values.emplace(value, choice);
    return absl::OkStatus();
  }
  return ErrorAt(number, absl::StrCat(Quoted(line), " is not a choice such as \"apart %57\""));
}

}  // namespace

std::string_view Name(Choice choice) { return kChoiceNames[static_cast<size_t>(choice)]; }

Choice Opposite(Choice choice) { return static_cast<Choice>(static_cast<uint8_t>(choice) ^ 1); }

std::string Print(const Choices& choices) {
  std::string text = absl::StrCat(std::string(kFirstLine), "\n");
  for (const auto& [value, choice] : choices.values)
    absl::StrAppend(&text, std::string(Name(choice)), " %", value, "\n");
  return text;
}

absl::StatusOr<Choices> ParseChoices(std::string_view text) {
  Choices choices;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    ++number;
    if (end == std::string_view::npos) return ErrorAt(number, "the line is not complete");
    text.remove_prefix(end + 1);
    if (number == 1 && line != kFirstLine) {
      return ErrorAt(1, absl::StrCat("choices of this version start with ", Quoted(kFirstLine),
                                     ", not ", Quoted(line)));
    }
    if (number == 1) continue;
    if (choices.values.size() == kChoicesMax)
      return ErrorAt(number, absl::StrCat("there are more than ", kChoicesMax, " choices"));
    if (absl::Status read = ReadChoice(line, number, &choices); !read.ok()) return read;
  }
  if (number == 0) return absl::InvalidArgumentError("line 1: the text is empty");
  return choices;
}

std::string GraphKey(const graph::Graph& graph) {
  return absl::StrCat("graph ", Sha256Hex(graph::Print(graph)), "\n");
}

std::vector<const ir::Node*> NumberedValues(const graph::Graph& graph) {
  return ir::TopologicalOrder(graph::Roots(graph));
}

ChosenValues::ChosenValues(const Choices& choices, const graph::Graph& graph) {
  if (choices.empty()) return;
  const std::vector<const ir::Node*> values = NumberedValues(graph);
  for (const auto& [number, choice] : choices.values) {
    if (number < static_cast<int64_t>(values.size()))
      chosen_[values[static_cast<size_t>(number)]] |= BitOf(choice);
  }
}

bool ChosenValues::Has(const ir::Node* node, Choice choice) const {
  if (chosen_.empty()) return false;
  const auto found = chosen_.find(node);
  return found != chosen_.end() && (found->second & BitOf(choice)) != 0;
}

}  // namespace kiln::partition
