#include "server/config/config.h"

#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/log/log.h"

// Parsing returns errors instead of throwing exceptions.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace kiln::config {
namespace {

// One key of the file, with its expected type and how its value is stored.
struct Key {
  std::string path;  // "cache.limit"
  std::string wants;
  std::function<bool(const toml::node&, Config*)> take;
};

// These return false for a value of another type or out of range; ApplyTable reports it with its
// line.
bool TakeString(const toml::node& node, std::string* out) {
  const auto value = node.value_exact<std::string>();
  if (value) *out = *value;
  return value.has_value();
}

bool TakeStrings(const toml::node& node, std::vector<std::string>* out) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return false;
  // Collected separately, so that an error in the middle leaves the old values.
  std::vector<std::string> values;
  for (const toml::node& element : *array) {
    if (!TakeString(element, &values.emplace_back())) return false;
  }
  *out = std::move(values);
  return true;
}

bool TakeBool(const toml::node& node, bool* out) {
  const auto value = node.value_exact<bool>();
  if (value) *out = *value;
  return value.has_value();
}

bool TakeInt(const toml::node& node, int* out) {
  const auto value = node.value_exact<int64_t>();
  if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return false;
  *out = static_cast<int>(*value);
  return true;
}

bool TakeBytes(const toml::node& node, int64_t* out) {
  if (const auto number = node.value_exact<int64_t>()) {
    *out = *number;
    return *number >= 0;
  }
  std::string text;
  if (!TakeString(node, &text)) return false;
  const auto bytes = ParseBytes(text);
  if (bytes.ok()) *out = *bytes;
  return bytes.ok();
}

constexpr int64_t kHostMemoryMin = 16 << 20;
constexpr int kSecondsPerWeek = 7 * 24 * 3600;
constexpr int kHoursPerYear = 366 * 24;
// An idle worker uses a tenth of it.
constexpr int64_t kCompileMemoryMin = 256 << 20;

constexpr char kBytes[] = "a number of bytes such as \"512MiB\"";
constexpr char kPasses[] = "an array of compiler passes; `irtool --list` shows them";
constexpr char kNumber[] = "an integer, at least 0";

// Adds a key for each of quota::Resources.
std::vector<Key> WithQuotas(std::vector<Key> keys) {
  for (const quota::ResourceRow& row : quota::Resources()) {
    keys.push_back({absl::StrCat("quota.", row.name), row.is_bytes ? kBytes : kNumber,
                    [&row](const toml::node& n, Config* c) {
                      int64_t* limit = &c->quota[row.resource];
                      if (row.is_bytes) return TakeBytes(n, limit);
                      int number = 0;
                      const bool is_number = TakeInt(n, &number);
                      if (is_number) *limit = number;
                      return is_number;
                    }});
  }
  return keys;
}

const std::vector<Key>& Keys() {
  // In the order of config.h. Never destroyed, as Google's style requires for statics.
  static const std::vector<Key>& keys = *new auto(WithQuotas({
      {"listen", "an array of addresses",
       [](const toml::node& n, Config* c) { return TakeStrings(n, &c->listen); }},
      {"log_level", "a string",
       [](const toml::node& n, Config* c) { return TakeString(n, &c->log_level); }},
      {"metrics.listen", "an address or \"\"",
       [](const toml::node& n, Config* c) { return TakeString(n, &c->metrics_listen); }},
      {"cache.folder", "a string",
       [](const toml::node& n, Config* c) { return TakeString(n, &c->cache_folder); }},
      {"cache.limit", kBytes,
       [](const toml::node& n, Config* c) { return TakeBytes(n, &c->cache_limit_bytes); }},
      {"state.folder", "a string",
       [](const toml::node& n, Config* c) { return TakeString(n, &c->state_folder); }},
      {"programs.shared", "true or false",
       [](const toml::node& n, Config* c) { return TakeBool(n, &c->programs_shared); }},
      {"metrics.plain_http", "true or false",
       [](const toml::node& n, Config* c) { return TakeBool(n, &c->metrics_plain_http); }},
      {"auth.system_users", "true or false",
       [](const toml::node& n, Config* c) { return TakeBool(n, &c->system_users); }},
      {"tls.certificate", "a string",
       [](const toml::node& n, Config* c) { return TakeString(n, &c->tls_certificate); }},
      {"tls.key", "a string",
       [](const toml::node& n, Config* c) { return TakeString(n, &c->tls_key); }},
      {"tls.client_ca", "a string",
       [](const toml::node& n, Config* c) { return TakeString(n, &c->tls_client_ca); }},
      {"state.session_limit", kBytes,
       [](const toml::node& n, Config* c) { return TakeBytes(n, &c->kept_sessions_limit_bytes); }},
      {"devices.use", "an array of device names",
       [](const toml::node& n, Config* c) { return TakeStrings(n, &c->devices); }},
      {"devices.memory_limit", kBytes,
       [](const toml::node& n, Config* c) { return TakeBytes(n, &c->memory_limit_bytes); }},
      {"devices.cpu_devices", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->cpu_devices); }},
      {"devices.cpu_threads", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->cpu_threads); }},
      {"devices.cpu_features", "a string",
       [](const toml::node& n, Config* c) { return TakeString(n, &c->cpu_features); }},
      {"devices.run_seconds_limit", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->run_seconds_limit); }},
      {"devices.health_interval_seconds", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->health_interval_seconds); }},
      {"fairness.slice_ms", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->slice_milliseconds); }},
      {"fairness.compiles_waiting_limit", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->compiles_waiting_limit); }},
      {"compiler.seconds_limit", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->compile_seconds_limit); }},
      {"compiler.memory_limit", kBytes,
       [](const toml::node& n, Config* c) { return TakeBytes(n, &c->compile_memory_limit_bytes); }},
      {"compiler.unused_minutes_limit", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->unused_minutes_limit); }},
      {"compiler.disable_passes", kPasses,
       [](const toml::node& n, Config* c) { return TakeStrings(n, &c->disabled_passes); }},
      {"compiler.dump_passes", kPasses,
       [](const toml::node& n, Config* c) { return TakeStrings(n, &c->dumped_passes); }},
      {"memory.host_limit", kBytes,
       [](const toml::node& n, Config* c) { return TakeBytes(n, &c->host_memory_limit_bytes); }},
      {"sessions.lease_seconds", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->lease_seconds); }},
      {"sessions.lease_seconds_limit", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->lease_seconds_limit); }},
      {"sessions.detach_hours_limit", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->detach_hours_limit); }},
      {"sessions.limit", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->session_limit); }},
      {"sessions.idle_connection_seconds", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->idle_connection_seconds); }},
      {"sessions.ping_answer_seconds", kNumber,
       [](const toml::node& n, Config* c) { return TakeInt(n, &c->ping_answer_seconds); }},
      {"sessions.blob_limit", kBytes,
       [](const toml::node& n, Config* c) { return TakeBytes(n, &c->blob_limit_bytes); }},
  }));
  return keys;
}

absl::Status ErrorAt(const std::string& file, uint32_t line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ": ", what));
}

absl::Status ApplyTable(const toml::table& table, const std::string& prefix,
                        const std::string& file, Config* config) {
  for (const auto& [key, node] : table) {
    // "devices.use" for the key "use" of the section "devices".
    const std::string path = absl::StrCat(prefix, std::string(key.str()));
    const uint32_t line = key.source().begin.line;
    const Key* known = nullptr;
    bool is_section = false;
    for (const Key& row : Keys()) {
      if (row.path == path) known = &row;
      // "devices" is a section because there is a key "devices.use".
      is_section = is_section || absl::StartsWith(row.path, absl::StrCat(path, "."));
    }
    if (is_section && node.is_table()) {
      if (absl::Status status = ApplyTable(*node.as_table(), absl::StrCat(path, "."), file, config);
          !status.ok()) {
        return status;
      }
    } else if (known == nullptr) {
      return ErrorAt(file, line,
                     absl::StrCat("unknown key \"", path, "\"; known keys: ",
                                  absl::StrJoin(Keys(), ", ", [](std::string* out, const Key& row) {
                                    out->append(row.path);
                                  })));
    } else if (!known->take(node, config)) {
      return ErrorAt(file, line, absl::StrCat("\"", path, "\" must be ", known->wants));
    }
  }
  return absl::OkStatus();
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

absl::Status ApplyToml(const std::string& text, const std::string& file, Config* config) {
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    return ErrorAt(file, parsed.error().source().begin.line,
                   std::string(parsed.error().description()));
  }
  return ApplyTable(parsed.table(), "", file, config);
}

absl::Status ApplyFile(const std::string& path, Config* config) {
  std::ifstream stream(path);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read the configuration ", path));
  std::stringstream text;
  text << stream.rdbuf();
  return ApplyToml(text.str(), path, config);
}

absl::Status Check(const Config& config) {
  if (config.listen.empty()) return absl::InvalidArgumentError("listen: give at least one address");
  for (const std::string& address : config.listen) {
    if (!IsAddress(address)) {
      return absl::InvalidArgumentError(
          absl::StrCat("listen: \"", address,
                       "\" is neither unix:PATH nor host:port with a port of 0 to 65535"));
    }
  }
  if (!config.metrics_listen.empty() &&
      (absl::StartsWith(config.metrics_listen, "unix:") || !IsAddress(config.metrics_listen))) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics: \"", config.metrics_listen, "\" is not host:port"));
  }
  log::Level level;
  if (!log::ParseLevel(config.log_level, &level)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "log_level: \"", config.log_level, "\" is not allowed; use debug, info, warning or error"));
  }
  if (config.cpu_devices < 0 || config.cpu_devices > 64) {
    return absl::InvalidArgumentError(
        absl::StrCat("cpu_devices: ", config.cpu_devices, " is not between 0 and 64"));
  }
  if (config.cpu_threads < 0 || config.cpu_threads > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("cpu_threads: ", config.cpu_threads, " is not between 0 and 4096"));
  }
  if (config.lease_seconds_limit < 1 || config.lease_seconds_limit > kSecondsPerWeek) {
    return absl::InvalidArgumentError(
        absl::StrCat("lease_seconds_limit: ", config.lease_seconds_limit, " is not between 1 and ",
                     kSecondsPerWeek));
  }
  if (config.lease_seconds < 1 || config.lease_seconds > kSecondsPerWeek) {
    return absl::InvalidArgumentError(absl::StrCat("lease_seconds: ", config.lease_seconds,
                                                   " is not between 1 and ", kSecondsPerWeek));
  }
  if (config.detach_hours_limit < 0 || config.detach_hours_limit > kHoursPerYear) {
    return absl::InvalidArgumentError(
        absl::StrCat("detach_hours_limit: ", config.detach_hours_limit, " is not between 0 and ",
                     kHoursPerYear));
  }
  if (config.session_limit < 1 || config.session_limit > 1'000'000) {
    return absl::InvalidArgumentError(
        absl::StrCat("sessions.limit: ", config.session_limit, " is not between 1 and 1000000"));
  }
  if (config.idle_connection_seconds < 1 || config.idle_connection_seconds > kSecondsPerWeek) {
    return absl::InvalidArgumentError(
        absl::StrCat("sessions.idle_connection_seconds: ", config.idle_connection_seconds,
                     " is not between 1 and ", kSecondsPerWeek));
  }
  if (config.ping_answer_seconds < 1 || config.ping_answer_seconds > kSecondsPerWeek) {
    return absl::InvalidArgumentError(
        absl::StrCat("sessions.ping_answer_seconds: ", config.ping_answer_seconds,
                     " is not between 1 and ", kSecondsPerWeek));
  }
  if (config.memory_limit_bytes < 0 || config.cache_limit_bytes < 0 ||
      config.blob_limit_bytes < 0 || config.kept_sessions_limit_bytes < 0 ||
      config.host_memory_limit_bytes < 0) {
    return absl::InvalidArgumentError("limits in bytes must be 0 or more");
  }
  if (config.host_memory_limit_bytes > 0 && config.host_memory_limit_bytes < kHostMemoryMin) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory.host_limit: ", config.host_memory_limit_bytes,
                     " bytes are not enough; set ", kHostMemoryMin, " or more"));
  }
  if (config.compile_seconds_limit < 0) {
    return absl::InvalidArgumentError("compiler.seconds_limit: it must not be negative");
  }
  if (config.compile_memory_limit_bytes != 0 &&
      config.compile_memory_limit_bytes < kCompileMemoryMin) {
    return absl::InvalidArgumentError(absl::StrCat(
        "compiler.memory_limit: ", config.compile_memory_limit_bytes, " bytes are not enough; set ",
        kCompileMemoryMin, " or more, or 0 for no limit"));
  }
  const int64_t weight = config.quota[quota::Resource::kWeight];
  if (weight < 1 || weight > quota::kWeightMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("quota.weight: ", weight, " is not between 1 and ", quota::kWeightMax));
  }
  if (config.health_interval_seconds < 0) {
    return absl::InvalidArgumentError("health_interval_seconds: it must not be negative");
  }
  if (config.slice_milliseconds < 0 || config.compiles_waiting_limit < 1) {
    return absl::InvalidArgumentError(
        "fairness: slice_ms must not be negative, and compiles_waiting_limit must be positive");
  }
  if (config.run_seconds_limit < 0) {
    return absl::InvalidArgumentError("run_seconds_limit: it must not be negative");
  }
  return absl::OkStatus();
}

}  // namespace kiln::config
