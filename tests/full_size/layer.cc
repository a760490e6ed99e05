#include "tests/full_size/layer.h"

#include <cctype>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/str_cat.h"

namespace kiln::full_size {
namespace {

// Parses "3x224x224"; empty if the word is not such a list.
std::vector<int64_t> ReadNumbers(absl::string_view word) {
  std::vector<int64_t> numbers;
  for (const absl::string_view part : absl::StrSplit(word, 'x')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<Layer> ParseLayer(absl::string_view text) {
  Layer layer;
  layer.text = std::string(absl::StripAsciiWhitespace(text));
  for (const absl::string_view word : absl::StrSplit(layer.text, ' ', absl::SkipEmpty())) {
    const std::vector<int64_t> numbers = ReadNumbers(word);
    const std::vector<int64_t> option = ReadNumbers(word.substr(1));
    if (layer.kind.empty()) {
      layer.kind = std::string(word);
    } else if (layer.shape.empty()) {
      if (numbers.empty()) {
        return absl::InvalidArgumentError(
            StrCat(layer.text, ": ", std::string(word), " is no shape"));
      }
      layer.shape = numbers;
    } else if (numbers.size() == 1) {
      layer.numbers.push_back(numbers[0]);
    } else if (!option.empty() && std::islower(word[0]) != 0) {
      layer.options[word[0]] = option;
    } else if (numbers.empty()) {
      layer.after.emplace_back(word);
    } else {
      return absl::InvalidArgumentError(StrCat(layer.text, ": a second shape ", std::string(word)));
    }
  }
  if (layer.shape.empty()) return absl::InvalidArgumentError(StrCat(layer.text, ": no shape"));
  return layer;
}

absl::StatusOr<std::vector<Network>> ParseNetworks(absl::string_view text) {
  constexpr absl::string_view kHeader = "network ";
  std::vector<Network> networks;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (line.substr(0, kHeader.size()) == kHeader) {
      networks.push_back({std::string(line.substr(kHeader.size())), {}});
      continue;
    }
    if (networks.empty()) return absl::InvalidArgumentError(StrCat(line, ": in no network"));
    absl::StatusOr<Layer> layer = ParseLayer(line);
    if (!layer.ok()) return layer.status();
    networks.back().layers.push_back(*std::move(layer));
  }
  return networks;
}

}  // namespace kiln::full_size
