#include "server/config/config.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/text/byte_count.h"
#include "server/clock/day_hours.h"
#include "server/config/keys.h"
#include "server/log/log.h"
#include "server/state/small_file.h"

// Parsing returns errors instead of throwing exceptions.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace kiln::config {
namespace {

std::optional<std::vector<std::string>> ListOf(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> list;
  for (const toml::node& element : *array) {
    const auto text = element.value_exact<std::string>();
    if (!text) return std::nullopt;
    list.push_back(*text);
  }
  return list;
}

std::optional<int64_t> NumberOf(const toml::node& node, int64_t max) {
  const auto number = node.value_exact<int64_t>();
  return number && *number >= 0 && *number <= max ? number : std::nullopt;
}

std::optional<int64_t> BytesOf(const toml::node& node) {
  const auto text = node.value_exact<std::string>();
  if (!text) return NumberOf(node, kAnyBytesMax);
  const auto bytes = ParseBytes(*text);
  return bytes.ok() ? std::optional(*bytes) : std::nullopt;
}

// Returns nullopt for a value of another type.
std::optional<Value> ValueOf(const toml::node& node, Type type) {
  switch (type) {
    case Type::kText:
      return node.value_exact<std::string>();
    case Type::kList:
      return ListOf(node);
    case Type::kSwitch:
      return node.value_exact<bool>();
    case Type::kNumber:
      return NumberOf(node, kAnyNumberMax);
    default:
      return BytesOf(node);
  }
}

// Eight times the example, which has every key. The parser recurses for each part of a dotted key,
// so in a larger file one key could exhaust the stack.
constexpr int64_t kConfigBytesMax = 64 << 10;

// Separates problems in a message; no message of one has it.
constexpr char kBetween[] = "; also: ";

// A file that is being applied.
struct Reading {
  const std::string& file;
  Config* config;
  Origins* origins;  // may be null
  std::vector<std::string> problems{};

  std::string At(uint32_t line) const { return absl::StrCat(file, ":", line); }
  void Problem(uint32_t line, const std::string& what) {
    problems.push_back(absl::StrCat(At(line), ": ", what));
  }
};

std::string KnownPaths() {
  std::vector<absl::string_view> paths;
  for (const Key& key : Keys())
    if (!key.path.empty()) paths.push_back(key.path);
  return absl::StrJoin(paths, ", ");
}

void ApplyTable(const toml::table& table, const std::string& prefix, Reading* reading) {
  for (const auto& [key, node] : table) {
    // "devices.use" for the key "use" of the section "devices".
    const std::string path = absl::StrCat(prefix, std::string(key.str()));
    const uint32_t line = key.source().begin.line;
    const Key* known = FindKey(&Key::path, path);
    if (node.is_table() && IsSection(path)) {
      ApplyTable(*node.as_table(), absl::StrCat(path, "."), reading);
    } else if (known == nullptr) {
      reading->Problem(line,
                       absl::StrCat("unknown key \"", path, "\"; known keys: ", KnownPaths()));
    } else if (auto value = ValueOf(node, TypeOf(*known))) {
      Set(*known, *std::move(value), reading->config);
      if (reading->origins != nullptr) (*reading->origins)[LabelOf(*known)] = reading->At(line);
    } else {
      reading->Problem(line, absl::StrCat("\"", path, "\" must be ", Wanted(TypeOf(*known))));
    }
  }
}

// Checks the form only; the server finds out whether it can listen there.
bool IsAddress(const std::string& address) {
  absl::string_view rest = address;
  if (absl::ConsumePrefix(&rest, "unix:")) return !rest.empty();
  // The last colon: an IPv6 address such as [::1] contains colons.
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string::npos && colon > 0 &&
         absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 && port <= 65535;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

Config Defaults(const Environment& environment, int user_id) {
  Config config;
  const auto runtime = environment("XDG_RUNTIME_DIR");
  const std::string folder =
      runtime ? absl::StrCat(*runtime, "/kiln") : absl::StrCat("/tmp/kiln-", user_id);
  config.listen = {absl::StrCat("unix:", folder, "/kilnd.sock"), absl::StrCat("127.0.0.1:", kPort)};
  config.metrics_listen = absl::StrCat("127.0.0.1:", kMetricsPort);
  const auto home = environment("HOME");
  // The folders of the XDG Base Directory Specification, else the user's, else the system's.
  const auto folder_of = [&](const char* variable, const char* of_home, const char* last) {
    if (const auto base = environment(variable)) return absl::StrCat(*base, "/kiln");
    return home ? absl::StrCat(*home, of_home) : absl::StrCat("/var/tmp/kiln-", user_id, last);
  };
  config.cache_folder = folder_of("XDG_CACHE_HOME", "/.cache/kiln", "");
  config.state_folder = folder_of("XDG_STATE_HOME", "/.local/state/kiln", "/state");
  return config;
}

absl::Status ApplyToml(const std::string& text, const std::string& file, Config* config,
                       Origins* origins) {
  Reading reading{file, config, origins};
  const toml::parse_result parsed = toml::parse(text, file);
  if (parsed) {
    ApplyTable(parsed.table(), "", &reading);
  } else {
    reading.Problem(parsed.error().source().begin.line, std::string(parsed.error().description()));
  }
  return Joined(reading.problems);
}

absl::Status ApplyFile(const std::string& path, Config* config, Origins* origins) {
  const absl::StatusOr<std::string> text =
      state::ReadSmallFile(path, "the configuration", kConfigBytesMax);
  if (!text.ok()) return text.status();
  return ApplyToml(*text, path, config, origins);
}

std::vector<std::string> Problems(const Config& config) {
  std::vector<std::string> problems;
  if (config.listen.empty()) problems.push_back("listen: give at least one address");
  for (const std::string& address : config.listen) {
    if (IsAddress(address)) continue;
    problems.push_back(absl::StrCat(
        "listen: \"", address, "\" is neither unix:PATH nor host:port with a port of 0 to 65535"));
  }
  if (!config.metrics_listen.empty() &&
      (absl::StartsWith(config.metrics_listen, "unix:") || !IsAddress(config.metrics_listen)))
    problems.push_back(absl::StrCat("metrics: \"", config.metrics_listen, "\" is not host:port"));
  if (!ParseDayHours(config.idle_tuning_hours)) {
    problems.push_back(absl::StrCat("tuner.hours: \"", config.idle_tuning_hours,
                                    "\" is not allowed; give two hours of 0 to 24, such as "
                                    "\"22-6\""));
  }
  log::Level level;
  if (!log::ParseLevel(config.log_level, &level)) {
    problems.push_back(absl::StrCat("log_level: \"", config.log_level,
                                    "\" is not allowed; use debug, info, warning or error"));
  }
  for (const Key& key : Keys()) {
    const Value value = Get(key, config);
    const auto* number = std::get_if<int64_t>(&value);
    if (number == nullptr || IsInRange(key, *number)) continue;
    problems.push_back(
        absl::StrCat(LabelOf(key), ": ", *number, " is out of range; allowed is ", RangeText(key)));
  }
  return problems;
}

absl::Status Check(const Config& config) { return Joined(Problems(config)); }

absl::Status Joined(const std::vector<std::string>& problems) {
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, kBetween));
}

std::vector<std::string> Parted(const absl::Status& status) {
  if (status.ok()) return {};
  return absl::StrSplit(status.message(), kBetween);
}

}  // namespace kiln::config
