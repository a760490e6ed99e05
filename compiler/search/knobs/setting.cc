#include "compiler/search/knobs/setting.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::search {
namespace {

constexpr std::string_view kTitle = "setting";
constexpr std::string_view kKernel = "kernel";
constexpr std::string_view kStage = "stage";
// More than any kernel has.
constexpr int kStagesMax = 1 << 16;

using Words = std::vector<std::string_view>;

// Returns the number of the line's stage, and removes the words that name it.
absl::StatusOr<int> ParsePart(Words* words) {
  if (words->front() == kKernel) {
    words->erase(words->begin());
    return kKernelPart;
  }
  int stage;
  if (words->front() != kStage || words->size() < 2 ||
      !absl::SimpleAtoi(View((*words)[1]), &stage) || stage < 0 || stage >= kStagesMax) {
    return absl::InvalidArgumentError(
        "a line must start with \"kernel\" or with \"stage\" and its number");
  }
  words->erase(words->begin(), words->begin() + 2);
  return stage;
}

// Sets the knob of "knob=value", or says why it is ignored.
absl::Status ParseKnob(std::string_view word, Values* values) {
  const size_t equals = std::min(word.find('='), word.size());
  const KnobRow* row = FindKnob(word.substr(0, equals));
  if (row == nullptr) return absl::InvalidArgumentError("this version has no such knob");
  if (equals == word.size()) return absl::InvalidArgumentError("it has no value");
  const auto value = ParseValue(row->knob, word.substr(equals + 1));
  if (value.ok()) values->Set(row->knob, *value);
  return value.status();
}

absl::Status ParseLine(std::string_view line, ParsedSetting* parsed) {
  Words words = schedule::SplitText(line, ' ');
  if (words.empty()) return absl::OkStatus();
  const absl::StatusOr<int> part = ParsePart(&words);
  if (!part.ok()) return part.status();
  Values* values = &parsed->setting.parts[*part];
  for (const std::string_view word : words) {
    const absl::Status status = ParseKnob(word, values);
    if (status.ok()) continue;
    parsed->ignored.push_back(StrCat("'", word, "': ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Print(const Setting& setting) {
  std::string text = StrCat(kTitle, " ", kSettingVersion, "\n");
  for (const auto& [part, values] : setting.parts) {
    StrAppend(&text, part == kKernelPart ? std::string(kKernel) : StrCat(kStage, " ", part));
    for (const auto& [knob, value] : values.all()) {
      StrAppend(&text, " ", RowOf(knob).name, "=", PrintValue(knob, value));
    }
    StrAppend(&text, "\n");
  }
  return text;
}

absl::StatusOr<ParsedSetting> ParseSetting(std::string_view text) {
  ParsedSetting parsed;
  Words lines = schedule::SplitText(text, '\n');
  std::erase_if(lines, [](std::string_view line) { return line.starts_with("#"); });
  const std::string title = StrCat(kTitle, " ", kSettingVersion);
  if (lines.empty() || lines[0] != title) {
    return absl::InvalidArgumentError(
        StrCat("a setting of this version starts with the line '", title, "'"));
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    const absl::Status status = ParseLine(lines[i], &parsed);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        StrCat("the setting's line '", lines[i], "': ", status.message()));
  }
  return parsed;
}

}  // namespace kiln::search
