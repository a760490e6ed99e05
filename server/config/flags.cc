#include "server/config/flags.h"

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace {

// A flag that may be given several times; commas also separate values.
struct Addresses {
  std::vector<std::string> values;
};
// Abseil parses each occurrence of a flag into a new value and keeps only the last, so the
// addresses of all occurrences are collected here.
bool AbslParseFlag(absl::string_view text, Addresses* flag, std::string* error) {
  static std::vector<std::string>& collected = *new std::vector<std::string>;
  for (absl::string_view address : absl::StrSplit(text, ',', absl::SkipEmpty()))
    collected.emplace_back(address);
  flag->values = collected;
  return true;
}
std::string AbslUnparseFlag(const Addresses& flag) { return absl::StrJoin(flag.values, ","); }

}  // namespace

ABSL_FLAG(std::string, config, "",
          "configuration file (TOML); server/config/config.h lists its keys");
ABSL_FLAG(Addresses, listen, {}, "address for clients: unix:PATH or host:port; may be repeated");
ABSL_FLAG(std::string, metrics_listen, "", "host:port that serves /metrics, or \"none\"");
ABSL_FLAG(std::string, cache_dir, "", "folder for the kernel cache");
ABSL_FLAG(std::string, state_dir, "",
          "folder for data that outlives the daemon: users, limits, sessions");
ABSL_FLAG(std::optional<bool>, metrics_plain_http, std::nullopt,
          "serve /metrics over HTTP on a loopback address, even if clients use TLS");
ABSL_FLAG(std::optional<bool>, programs_shared, std::nullopt,
          "users who send the same graph share its program and kernels");
ABSL_FLAG(bool, new_token_key, false,
          "create a new state/token_key if the key of the users' tokens is lost; ends all tokens");
ABSL_FLAG(std::optional<bool>, system_users, std::nullopt,
          "other users of this machine may use the Unix sockets, under their account names");
ABSL_FLAG(std::string, tls_certificate, "",
          "PEM file with the certificate for TLS on all ports; required to listen beyond loopback");
ABSL_FLAG(std::string, tls_key, "", "PEM file with the certificate's private key");
ABSL_FLAG(
    std::string, tls_client_ca, "",
    "PEM file with the authorities that sign users' certificates; the common name is the user");
ABSL_FLAG(std::vector<std::string>, devices, {},
          "devices to use, for example cpu:0,cpu:1, or all of one kind: cpu; null (for debugging) "
          "computes nothing; opencl means all OpenCL devices; if empty: all devices except null "
          "and OpenCL devices that share host memory");
ABSL_FLAG(std::string, memory_limit, "", "most bytes to use of each device, for example 8GiB");
ABSL_FLAG(std::string, host_memory_limit, "",
          "most bytes of host memory for clients' data, for example 4GiB; 0: a sixth of the "
          "machine's memory");
ABSL_FLAG(std::string, blob_limit, "", "most bytes of that host memory for uploads; 0: all of it");
ABSL_FLAG(int, run_seconds_limit, -1,
          "most seconds that one run of a program may be predicted to take; 0: no limit");
ABSL_FLAG(int, slice_ms, -1,
          "milliseconds after which other users' runs may come between the kernels of a program; "
          "0: never");
ABSL_FLAG(int, compile_seconds_limit, -1, "most seconds to compile one kernel; 0: no limit");
ABSL_FLAG(std::string, compile_memory_limit, "",
          "most bytes of memory to compile one kernel, for example 4GiB; 0: no limit");
ABSL_FLAG(int, cpu_devices, -1, "number of CPU devices");
ABSL_FLAG(int, cpu_threads, -1,
          "threads of each CPU device; 0: the cores that kilnd may use, divided among the devices");
ABSL_FLAG(std::string, cpu_features, "",
          "vector instructions that kernels may use: avx512, avx2 or sse4.2, then extensions to "
          "leave out, for example avx2,-fma,-f16c; if empty: all that the processor has");
ABSL_FLAG(std::vector<std::string>, disable_passes, {},
          "optional compiler passes to leave out, for example simplify,merge_rows; `irtool --list` "
          "shows them");
ABSL_FLAG(std::vector<std::string>, dump_passes, {},
          "compiler passes whose output `kiln explain` shows, for example normalize,lower");
ABSL_FLAG(int, lease_seconds, -1, "seconds of a session's lease if the client sets none");
ABSL_FLAG(int, ping_answer_seconds, -1,
          "seconds after which a connection with an unanswered ping is closed");
ABSL_FLAG(int, session_limit, -1, "most sessions open at once, of all users");
ABSL_FLAG(std::string, log_level, "", "debug, info, warning or error");

namespace kiln::config {
namespace {

// Flags that mean true if given without a value.
constexpr std::array kSwitches = {"metrics_plain_http", "new_token_key", "programs_shared",
                                  "system_users"};

// Abseil requires a value for each flag whose type is not its own bool.
std::vector<std::string> WithValues(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::string& word : words) {
    absl::string_view given = word;
    if (given == "--") break;
    if (!absl::ConsumePrefix(&given, "--")) absl::ConsumePrefix(&given, "-");
    if (given.size() == word.size()) continue;
    for (const absl::string_view flag : kSwitches) {
      if (given == flag) {
        word = absl::StrCat("--", flag, "=true");
        break;
      }
      if (given == absl::StrCat("no", flag)) {
        word = absl::StrCat("--", flag, "=false");
        break;
      }
    }
  }
  return words;
}

// A flag that was not given, "" or -1, keeps the file's value.
void OverrideText(const absl::Flag<std::string>& flag, std::string* value) {
  const std::string given = absl::GetFlag(flag);
  if (!given.empty()) *value = given;
}

void OverrideNames(const absl::Flag<std::vector<std::string>>& flag,
                   std::vector<std::string>* value) {
  const std::vector<std::string> given = absl::GetFlag(flag);
  if (!given.empty()) *value = given;
}

void OverrideNumber(const absl::Flag<int>& flag, int* value) {
  const int given = absl::GetFlag(flag);
  if (given != -1) *value = given;
}

absl::Status OverrideBytes(const absl::Flag<std::string>& flag, int64_t* value) {
  const std::string given = absl::GetFlag(flag);
  if (given.empty()) return absl::OkStatus();
  const auto bytes = ParseBytes(given);
  if (bytes.ok()) *value = *bytes;
  return bytes.ok() ? absl::OkStatus()
                    : absl::InvalidArgumentError(
                          absl::StrCat("--", flag.Name(), ": ", bytes.status().message()));
}

absl::Status ApplyFlags(Config* config) {
  if (const auto listen = absl::GetFlag(FLAGS_listen).values; !listen.empty())
    config->listen = listen;
  OverrideNames(FLAGS_devices, &config->devices);
  OverrideNames(FLAGS_disable_passes, &config->disabled_passes);
  OverrideNames(FLAGS_dump_passes, &config->dumped_passes);
  OverrideText(FLAGS_metrics_listen, &config->metrics_listen);
  // In the file, "" means no metrics, but an empty flag means that it was not given.
  if (config->metrics_listen == "none") config->metrics_listen.clear();
  OverrideText(FLAGS_cache_dir, &config->cache_folder);
  OverrideText(FLAGS_state_dir, &config->state_folder);
  config->programs_shared = absl::GetFlag(FLAGS_programs_shared).value_or(config->programs_shared);
  config->new_token_key = absl::GetFlag(FLAGS_new_token_key);
  config->metrics_plain_http =
      absl::GetFlag(FLAGS_metrics_plain_http).value_or(config->metrics_plain_http);
  config->system_users = absl::GetFlag(FLAGS_system_users).value_or(config->system_users);
  OverrideText(FLAGS_tls_certificate, &config->tls_certificate);
  OverrideText(FLAGS_tls_key, &config->tls_key);
  OverrideText(FLAGS_tls_client_ca, &config->tls_client_ca);
  OverrideText(FLAGS_log_level, &config->log_level);
  OverrideNumber(FLAGS_cpu_devices, &config->cpu_devices);
  OverrideNumber(FLAGS_cpu_threads, &config->cpu_threads);
  OverrideText(FLAGS_cpu_features, &config->cpu_features);
  OverrideNumber(FLAGS_lease_seconds, &config->lease_seconds);
  OverrideNumber(FLAGS_ping_answer_seconds, &config->ping_answer_seconds);
  OverrideNumber(FLAGS_session_limit, &config->session_limit);
  OverrideNumber(FLAGS_compile_seconds_limit, &config->compile_seconds_limit);
  OverrideNumber(FLAGS_run_seconds_limit, &config->run_seconds_limit);
  OverrideNumber(FLAGS_slice_ms, &config->slice_milliseconds);
  absl::Status status = OverrideBytes(FLAGS_memory_limit, &config->memory_limit_bytes);
  status.Update(OverrideBytes(FLAGS_host_memory_limit, &config->host_memory_limit_bytes));
  status.Update(OverrideBytes(FLAGS_compile_memory_limit, &config->compile_memory_limit_bytes));
  status.Update(OverrideBytes(FLAGS_blob_limit, &config->blob_limit_bytes));
  return status;
}

}  // namespace

absl::StatusOr<Config> FromCommandLine(int argc, char** argv, const Environment& environment,
                                       int user_id) {
  // Abseil accepts it only once in a process.
  static std::once_flag described;
  std::call_once(described, [] {
    absl::SetProgramUsageMessage(
        "owns the devices of this machine and runs tensor graphs on them for its clients");
  });
  // By default --help shows only the flags of the program's main file, which has none, and shows
  // the path at which this file was built.
  static constexpr char kThisFile[] = "server/config/flags.cc";
  absl::FlagsUsageConfig usage;
  usage.normalize_filename = [](absl::string_view file) {
    return std::string(absl::EndsWith(file, kThisFile) ? kThisFile : file);
  };
  usage.contains_help_flags = [](absl::string_view file) { return file == kThisFile; };
  absl::SetFlagsUsageConfig(usage);
  std::vector<std::string> words = WithValues(argc, argv);
  std::vector<char*> given;
  for (std::string& word : words) given.push_back(word.data());
  const std::vector<char*> rest =
      absl::ParseCommandLine(static_cast<int>(given.size()), given.data());
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument \"", rest[1], "\"; see --help"));
  }
  Config config = Defaults(environment, user_id);
  if (const std::string file = absl::GetFlag(FLAGS_config); !file.empty()) {
    if (absl::Status status = ApplyFile(file, &config); !status.ok()) return status;
  }
  if (absl::Status status = ApplyFlags(&config); !status.ok()) return status;
  if (absl::Status status = Check(config); !status.ok()) return status;
  return config;
}

}  // namespace kiln::config
