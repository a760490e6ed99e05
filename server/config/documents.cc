#include "server/config/documents.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/config/config.h"
#include "server/config/keys.h"

namespace kiln::config {
namespace {

constexpr size_t kLineBytes = 100;

// The defaults with the names of environment variables for their values.
const Config& SymbolicDefaults() {
  static const Config& defaults = *new Config(
      Defaults([](const std::string& name) { return absl::StrCat("$", name); }, /*user_id=*/0));
  return defaults;
}

// TOML's basic string.
std::string QuotedText(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&quoted, "\\u%04X", static_cast<unsigned char>(c));
    } else {
      quoted.push_back(c);
    }
  }
  return absl::StrCat(quoted, "\"");
}

// As TOML writes it.
std::string ValueText(const Key& key, const Config& config) {
  const Value value = Get(key, config);
  if (const auto* text = std::get_if<std::string>(&value)) return QuotedText(*text);
  if (const auto* is_on = std::get_if<bool>(&value)) return *is_on ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value))
    return TypeOf(key) == Type::kBytes ? QuotedText(BytesText(*number)) : absl::StrCat(*number);
  std::vector<std::string> quoted;
  for (const std::string& text : std::get<std::vector<std::string>>(value))
    quoted.push_back(QuotedText(text));
  return absl::StrCat("[", absl::StrJoin(quoted, ", "), "]");
}

std::string DefaultText(const Key& key) { return ValueText(key, SymbolicDefaults()); }

bool IsNumeric(const Key& key) {
  return TypeOf(key) == Type::kNumber || TypeOf(key) == Type::kBytes;
}

// "seconds", "bytes", or the type if it has no unit.
std::string UnitText(const Key& key) {
  constexpr absl::string_view kTypes[] = {"text", "list", "switch", "number", "bytes"};
  return std::string(key.unit.empty() ? kTypes[static_cast<size_t>(TypeOf(key))] : key.unit);
}

// The meaning, with that of 0.
std::string MeaningText(const Key& key) {
  return absl::StrCat(key.meaning, key.zero.empty() ? "" : absl::StrCat(" 0: ", key.zero, "."));
}

// Breaks text into lines that begin with `indent`.
std::string Wrapped(absl::string_view text, absl::string_view indent) {
  std::string out, line(indent);
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kLineBytes) {
      absl::StrAppend(&out, line, "\n");
      line = std::string(indent);
    }
    absl::StrAppend(&line, line.size() > indent.size() ? " " : "", word);
  }
  return absl::StrCat(out, line, "\n");
}

std::vector<const Key*> KeysOf(const Section& section) {
  std::vector<const Key*> keys;
  for (const Key& key : Keys())
    if (!key.path.empty() && SectionOf(key) == section.name) keys.push_back(&key);
  return keys;
}

std::string InCode(absl::string_view text) {
  return text.empty() ? "" : absl::StrCat("`", text, "`");
}

// A row of a table; `place` is in its first column.
std::string Row(const Key& key, absl::string_view place) {
  return absl::StrCat(
      "| ",
      absl::StrJoin(
          {InCode(place), InCode(key.flag.empty() ? "" : absl::StrCat("--", key.flag)),
           UnitText(key), InCode(DefaultText(key)), IsNumeric(key) ? RangeText(key) : std::string(),
           std::string(key.reloads               ? "yes"
                       : key.names_reloaded_file ? "the file"
                                                 : "no"),
           MeaningText(key)},
          " | "),
      " |\n");
}

constexpr absl::string_view kTableHead =
    "\n| key | flag | type or unit | default | range | reloaded | meaning |\n"
    "| --- | --- | --- | --- | --- | --- | --- |\n";

constexpr absl::string_view kPageHead =
    R"(# Configuration

This page lists every key of the configuration of `kilnd`. It is generated from the table in `server/config/keys.cc` by the
target `configuration`.

`kilnd` needs no configuration. A file that `--config` names overrides the defaults, and flags override the file.
[deploy/kilnd.toml](../deploy/kilnd.toml) is such a file, in [TOML](https://toml.io/en/v1.0.0), with all keys and their
defaults. An unknown key, a value of another type and a number out of its range are errors, which name the file and the
line or the key.

The table `[cache]` of the file has the keys of the section `[cache]` below. The types:

- text: `"info"` in the file; `--log_level=info` or `--log_level info`.
- list: `["a", "b"]` in the file; `--devices=a,b`. If a flag is repeated, the last one counts; those of `--listen` add up.
- switch: `true` or `false` in the file; `--system_users` and `--nosystem_users`.
- a number of the given unit: `60`.
- bytes: `"512MiB"`, `"1.5GB"` or `1000000` in the file; `--memory_limit=512MiB`. kB, MB, GB and TB are powers of 1000, KiB,
  MiB, GiB and TiB powers of 1024.

A flag with an empty value is as if it was not given. In defaults, `$NAME` stands for the value of an environment variable.

`kilnd --check_config` checks a configuration and the files that it names, and prints all problems at once. `kilnd
--print_config` prints all values and where each comes from.

Values are read when the daemon starts. On SIGHUP (`systemctl reload kilnd`) it reads the file again and applies the keys with
"reloaded: yes"; its log names other keys that have changed, for which it must be started again: sessions are kept ([Restarts and
lost connections](design/restarts.md)). "reloaded: the file" means that the file that the key names is read again when it changes.
[Operating](guides/operating.md#reload) says what else is read again.
)";

}  // namespace

std::string HelpText() {
  std::string text =
      "usage: kilnd [--FLAG=VALUE]...\n       kilnd --help | --version\n\n"
      "Owns the devices of this machine and runs tensor graphs on them for its clients.\n"
      "docs/configuration.md describes these flags and the keys of the configuration file.\n\n"
      "Flags, with their keys in the file:\n";
  for (const Key& key : Keys()) {
    if (key.flag.empty()) continue;
    const std::string path = key.path.empty() ? "" : absl::StrCat(" [", key.path, "]");
    absl::StrAppend(
        &text, "  --", key.flag, " (", UnitText(key), ")", path, "\n",
        Wrapped(absl::StrCat(MeaningText(key), " Default: ", DefaultText(key)), "      "));
  }
  return text;
}

std::string ReferencePage() {
  std::string page(kPageHead);
  absl::StrAppend(&page, "\n## Only flags\n", kTableHead);
  for (const Key& key : Keys())
    if (key.path.empty()) page += Row(key, "");
  for (const Section& section : Sections()) {
    const std::string title =
        section.name.empty() ? "Top level" : absl::StrCat("[", section.name, "]");
    absl::StrAppend(&page, "\n## ", title, "\n\n", section.what, "\n", kTableHead);
    for (const Key* key : KeysOf(section)) page += Row(*key, NameOf(*key));
  }
  return page;
}

std::string ConfigText(const Config& config, const Origins& origins) {
  const auto line = [&](const Key& key, const std::string& begin) {
    const auto found = origins.find(LabelOf(key));
    return absl::StrCat(begin, " = ", ValueText(key, config), "  # ",
                        found == origins.end() ? "default" : found->second, "\n");
  };
  std::string text = "# The values with which this kilnd starts, and where each comes from.\n";
  for (const Key& key : Keys())
    if (key.path.empty() && origins.contains(LabelOf(key)))
      text += line(key, absl::StrCat("# --", key.flag));
  for (const Section& section : Sections()) {
    absl::StrAppend(&text, "\n");
    if (!section.name.empty()) absl::StrAppend(&text, "[", section.name, "]\n");
    for (const Key* key : KeysOf(section)) text += line(*key, std::string(NameOf(*key)));
  }
  return text;
}

std::string ExampleFile() {
  std::string file =
      "# The configuration of kilnd, with its defaults. To change one, remove the # before its "
      "key.\n"
      "# Generated from the table in server/config/keys.cc; docs/configuration.md explains the "
      "types.\n";
  for (const Section& section : Sections()) {
    absl::StrAppend(&file, "\n");
    if (!section.name.empty())
      absl::StrAppend(&file, Wrapped(section.what, "# "), "[", section.name, "]\n");
    for (const Key* key : KeysOf(section)) {
      const std::string range =
          IsNumeric(*key) ? absl::StrCat(" (", UnitText(*key), ": ", RangeText(*key), ")") : "";
      absl::StrAppend(&file, Wrapped(absl::StrCat(MeaningText(*key), range), "# "), "#",
                      NameOf(*key), " = ", DefaultText(*key), "\n");
    }
  }
  return file;
}

}  // namespace kiln::config
