#include "server/config/flags.h"

#include <algorithm>
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

std::vector<GivenFlag> ParseWords(const std::vector<std::string>& words,
                                  std::vector<std::string>* problems) {
  std::vector<GivenFlag> flags;
  for (size_t i = 0; i < words.size(); ++i) {
    auto flag = ParseWord(words[i]);
    if (flag.ok() && !flag->second && ++i < words.size()) flag->second = words[i];
    if (flag.ok() && !flag->second) flag = BadCommandLine("a value must follow", words[i - 1]);
    if (flag.ok()) {
      flags.push_back({flag->first, *std::move(flag->second)});
    } else {
      problems->push_back(std::string(flag.status().message()));
    }
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

void ApplyFlags(const std::vector<GivenFlag>& flags, Loaded* loaded) {
  std::vector<const Key*> seen;
  for (const auto& [key, text] : flags) {
    if (text.empty()) continue;
    auto value = Parse(*key, text);
    if (!value) {
      loaded->problems.push_back(
          absl::StrCat("--", key->flag, ": \"", text, "\" is not ", Wanted(TypeOf(*key))));
      continue;
    }
    if (key->flag_adds && absl::c_linear_search(seen, key)) {
      auto list = std::get<std::vector<std::string>>(Get(*key, loaded->config));
      absl::c_move(std::get<std::vector<std::string>>(*value), std::back_inserter(list));
      value = std::move(list);
    }
    seen.push_back(key);
    Set(*key, *std::move(value), &loaded->config);
    loaded->origins[LabelOf(*key)] = absl::StrCat("--", key->flag);
  }
}

}  // namespace

Loaded Load(int argc, char** argv, const Environment& environment, int user_id) {
  Loaded loaded{Defaults(environment, user_id), {}, {}};
  const std::vector<GivenFlag> flags =
      ParseWords({argv + std::min(argc, 1), argv + argc}, &loaded.problems);
  // The file comes first, because the other flags override it.
  for (const auto& [key, text] : flags)
    if (key->flag == "config") loaded.config.file = text;
  if (!loaded.config.file.empty()) {
    const std::string file = loaded.config.file;
    for (std::string& problem : Parted(ApplyFile(file, &loaded.config, &loaded.origins)))
      loaded.problems.push_back(std::move(problem));
  }
  ApplyFlags(flags, &loaded);
  // In the file, "" means no metrics, but an empty flag means that it was not given.
  if (loaded.config.metrics_listen == "none") loaded.config.metrics_listen.clear();
  for (std::string& problem : Problems(loaded.config))
    loaded.problems.push_back(std::move(problem));
  return loaded;
}

absl::StatusOr<Config> FromCommandLine(int argc, char** argv, const Environment& environment,
                                       int user_id) {
  Loaded loaded = Load(argc, argv, environment, user_id);
  if (absl::Status status = Joined(loaded.problems); !status.ok()) return status;
  return std::move(loaded.config);
}

}  // namespace kiln::config
