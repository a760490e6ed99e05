// The daemon's configuration: defaults that work without a file, a TOML file, and flags that
// override it.
//
// The daemon's default addresses, in the order in which clients try them:
//   unix:$XDG_RUNTIME_DIR/kiln/kilnd.sock    or, if XDG_RUNTIME_DIR is not set,
//   unix:/tmp/kiln-UID/kilnd.sock 127.0.0.1:7433
// Metrics are on 127.0.0.1:7434. By default, nothing is reachable from other machines.
//
// keys.cc has the table of all keys; docs/configuration.md describes them.
#ifndef KILN_SERVER_CONFIG_CONFIG_H_
#define KILN_SERVER_CONFIG_CONFIG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/quota/resource.h"

namespace kiln::config {

inline constexpr int kPort = 7433;
inline constexpr int kMetricsPort = 7434;

// The table in keys.cc says what each value means, and which values are allowed.
struct Config {
  std::string file;                 // the configuration file that was read; empty: none
  std::vector<std::string> listen;  // "unix:PATH" or "host:port"
  std::string metrics_listen;       // "host:port"; empty: no metrics
  bool metrics_plain_http = false;
  bool metrics_web = true;
  std::string cache_folder;
  int64_t cache_limit_bytes = int64_t{4} << 30;
  std::string state_folder;
  bool system_users = false;
  bool new_token_key = false;
  // Instead of serving, kilnd does one of these and ends (server/one_shot.h).
  bool check_config = false;
  bool print_config = false;
  bool verify_audit = false;
  std::string export_state;  // the file to write
  std::string import_state;  // the file to read
  // For these two.
  std::string state_key_file;
  bool with_sessions = false;
  bool overwrite = false;

  std::string tls_certificate;  // empty: no TLS
  std::string tls_key;
  std::string tls_client_ca;
  int64_t saved_sessions_limit_bytes = int64_t{64} << 30;
  std::vector<std::string> devices;
  int64_t memory_limit_bytes = 0;  // of each device
  int cpu_devices = 1;
  int cpu_threads = 0;
  std::string cpu_features;  // in the CPU driver's syntax
  int lease_seconds = 900;
  int lease_seconds_limit = 3600;
  int detach_hours_limit = 168;
  int session_limit = 1024;
  int idle_connection_seconds = 120;
  int ping_answer_seconds = 10;
  int64_t blob_limit_bytes = 0;
  int64_t host_memory_limit_bytes = 0;
  int run_seconds_limit = 600;
  int health_interval_seconds = 10;
  int slice_milliseconds = 10;
  int compiles_waiting_limit = 1024;  // of each user
  quota::Limits quota;                // of each user without other limits
  int compile_seconds_limit = 60;     // of one kernel
  int64_t compile_memory_limit_bytes = int64_t{4} << 30;
  int unused_minutes_limit = 60;  // of programs
  bool programs_shared = true;    // among users
  bool idle_tuning = true;
  std::string idle_tuning_hours;  // "22-6" (clock/day_hours.h); empty: always
  int idle_tuning_quiet_seconds = 60;
  int idle_tuning_width = 4;
  int tuning_seconds_limit = 3600;  // of a user's tuning
  // Names of passes (compiler/pipeline.h).
  std::vector<std::string> disabled_passes;
  std::vector<std::string> dumped_passes;
  std::string log_level = "info";

  bool operator==(const Config&) const = default;
};

// The process's environment; injected, so tests can supply their own. Unset variables are nullopt.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// The configuration without a file and flags.
Config Defaults(const Environment& environment, int user_id);

// Where each value comes from, by the key's label (LabelOf): "FILE:LINE" or "--FLAG"; a default is
// missing.
using Origins = std::map<std::string, std::string>;

// Overrides `config` with a file's text, as far as it has no mistakes. INVALID_ARGUMENT:
// "file:line: the error" of each mistake, joined by "; ". Adds to `origins` if it is not null.
absl::Status ApplyToml(const std::string& text, const std::string& file, Config* config,
                       Origins* origins = nullptr);
// The same with the file's content, and the errors of state::ReadSmallFile.
absl::Status ApplyFile(const std::string& path, Config* config, Origins* origins = nullptr);

// Returns what is invalid from any source: a malformed address, or a number that is not in its
// range.
std::vector<std::string> Problems(const Config& config);
// INVALID_ARGUMENT with all of them, joined by "; ".
absl::Status Check(const Config& config);

// Joins problems to one status; OK if there are none.
absl::Status Joined(const std::vector<std::string>& problems);
// The problems of such a status.
std::vector<std::string> Parted(const absl::Status& status);

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_CONFIG_H_
