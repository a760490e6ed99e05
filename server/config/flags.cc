#include "server/config/flags.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/text/byte_count.h"
#include "server/config/documents.h"
#include "server/config/keys.h"

namespace kiln::config {
namespace {

struct GivenFlag {
  const Key* key;
  std::string text;
};

absl::Status BadCommandLine(absl::string_view what, absl::string_view word) {
  return absl::InvalidArgumentError(absl::StrCat(what, " \"", word, "\"; see --help"));
}

// Returns the flag of one word; without a text if that is the next word.
absl::StatusOr<std::pair<const Key*, std::optional<std::string>>> ParseWord(
    absl::string_view word) {
  absl::string_view name = word;
  if (!absl::ConsumePrefix(&name, "--") && !absl::ConsumePrefix(&name, "-"))
    return BadCommandLine("unexpected argument", word);
  std::optional<std::string> text;
  if (const size_t equals = name.find('='); equals != absl::string_view::npos) {
    text = std::string(name.substr(equals + 1));
    name = name.substr(0, equals);
  }
  const Key* key = FindKey(&Key::flag, name);
  if (key != nullptr) {
    if (TypeOf(*key) == Type::kSwitch && !text) text = "true";
    return std::pair(key, std::move(text));
  }
  if (!text && absl::ConsumePrefix(&name, "no")) key = FindKey(&Key::flag, name);
  if (key == nullptr || TypeOf(*key) != Type::kSwitch) return BadCommandLine("unknown flag", word);
  return std::pair(key, "false");
}

absl::StatusOr<std::vector<GivenFlag>> ParseWords(const std::vector<std::string>& words) {
  std::vector<GivenFlag> flags;
  for (size_t i = 0; i < words.size(); ++i) {
    auto flag = ParseWord(words[i]);
    if (!flag.ok()) return flag.status();
    if (!flag->second && ++i < words.size()) flag->second = words[i];
    if (!flag->second) return BadCommandLine("a value must follow", words[i - 1]);
    flags.push_back({flag->first, *std::move(flag->second)});
  }
  return flags;
}

// Returns nullopt if the text is not of the key's type.
std::optional<Value> Parse(const Key& key, const std::string& text) {
  switch (TypeOf(key)) {
    case Type::kText:
      return text;
    case Type::kList:
      return std::vector<std::string>(absl::StrSplit(text, ',', absl::SkipEmpty()));
    case Type::kSwitch: {
      bool value = false;
      return absl::SimpleAtob(text, &value) ? std::optional<Value>(value) : std::nullopt;
    }
    case Type::kNumber: {
      int64_t number = 0;
      const bool is_number = absl::SimpleAtoi(text, &number) && number <= kAnyNumberMax;
      return is_number && number >= 0 ? std::optional<Value>(number) : std::nullopt;
    }
    default: {
      const auto bytes = ParseBytes(text);
      return bytes.ok() ? std::optional<Value>(*bytes) : std::nullopt;
    }
  }
}

absl::Status ApplyFlags(const std::vector<GivenFlag>& flags, Config* config) {
  std::vector<const Key*> seen;
  for (const auto& [key, text] : flags) {
    if (text.empty()) continue;
    auto value = Parse(*key, text);
    if (!value) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", key->flag, ": \"", text, "\" is not ", Wanted(TypeOf(*key))));
    }
    if (key->flag_adds && absl::c_linear_search(seen, key)) {
      auto list = std::get<std::vector<std::string>>(Get(*key, *config));
      absl::c_move(std::get<std::vector<std::string>>(*value), std::back_inserter(list));
      value = std::move(list);
    }
    seen.push_back(key);
    Set(*key, *std::move(value), config);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Config> FromCommandLine(int argc, char** argv, const Environment& environment,
                                       int user_id) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (const std::string& word : words) {
    if (word != "--help" && word != "-help") continue;
    std::cout << HelpText() << std::flush;
    std::exit(0);
  }
  const auto flags = ParseWords(words);
  if (!flags.ok()) return flags.status();
  Config config = Defaults(environment, user_id);
  // The file comes first, because the other flags override it.
  for (const auto& [key, text] : *flags)
    if (key->flag == "config") config.file = text;
  if (!config.file.empty()) {
    const std::string file = config.file;
    if (absl::Status status = ApplyFile(file, &config); !status.ok()) return status;
  }
  if (absl::Status status = ApplyFlags(*flags, &config); !status.ok()) return status;
  // In the file, "" means no metrics, but an empty flag means that it was not given.
  if (config.metrics_listen == "none") config.metrics_listen.clear();
  if (absl::Status status = Check(config); !status.ok()) return status;
  return config;
}

}  // namespace kiln::config
