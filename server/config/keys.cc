#include "server/config/keys.h"

#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace kiln::config {
namespace {

constexpr int64_t kWeekSeconds = 7 * 24 * 3600;
constexpr int64_t kYearHours = 366 * 24;
// An idle worker uses a tenth of it.
constexpr int64_t kCompileMemoryMin = 256 << 20;
constexpr int64_t kHostMemoryMin = 16 << 20;

constexpr Section kSections[] = {
    {"", "Before all tables of the file."},
    {"metrics", "The HTTP server that Prometheus scrapes, and that has the web view."},
    {"cache", "Compiled kernels on disk."},
    {"state", "Persistent data that is not a cache: users, limits, sessions."},
    {"auth", "Who is a user."},
    {"tls", "For all ports; required to listen beyond loopback."},
    {"devices", "Which devices are used, and how."},
    {"fairness", "How users share devices."},
    {"compiler", "Limits of one kernel's compilation; aids for debugging."},
    {"programs", "Compiled programs."},
    {"tuner", "Searches for faster kernels: those of `kiln tune`, and the daemon's own."},
    {"memory",
     "By default CPU devices may use three quarters of the machine's memory, and clients' "
     "data in the daemon another sixth; the rest is for the process itself."},
    {"quota",
     "Limits of each user; `kiln quota set` changes them for one user. 0: only the limits "
     "for all users together apply."},
    {"sessions", "Sessions and their connections."},
};

constexpr Key kKeys[] = {
    {.flag = "config",
     .member = &Config::file,
     .meaning = "The configuration file, in TOML. Flags override it."},
    {.flag = "new_token_key",
     .member = &Config::new_token_key,
     .meaning = "Makes a new token_key in the state folder if the key that made the users' tokens "
                "is lost or damaged. All existing tokens become invalid."},
    {.flag = "check_config",
     .member = &Config::check_config,
     .meaning = "Only checks the configuration, with the files that it names: prints all problems, "
                "one a line, and ends; the exit status is 1 if there is one."},
    {.flag = "print_config",
     .member = &Config::print_config,
     .meaning = "Only prints all values in the form of the file, and where each comes from."},
    {.flag = "verify_audit",
     .member = &Config::verify_audit,
     .meaning = "Only checks the seals of the audit log in the state folder, also while a daemon "
                "runs, and names the first line that is wrong; the exit status is 1 if there is "
                "one."},
    {.flag = "export_state",
     .member = &Config::export_state,
     .meaning = "Only writes users, tokens, limits, the audit log and the tuner's settings to this "
                "file, also while a daemon runs. It is encrypted."},
    {.flag = "import_state",
     .member = &Config::import_state,
     .meaning =
         "Only restores the state and the settings from a file that --export_state wrote. No "
         "daemon may use the state folder."},
    {.flag = "state_key_file",
     .member = &Config::state_key_file,
     .meaning = "The file with the key of --export_state, which makes it if it does not exist, and "
                "of --import_state."},
    {.flag = "with_sessions",
     .member = &Config::with_sessions,
     .meaning = "Adds the saved sessions to --export_state, to move them to another machine. No "
                "daemon may use the state folder, nor go on with them later."},
    {.flag = "overwrite",
     .member = &Config::overwrite,
     .meaning = "Lets --import_state replace a state that is there, and --export_state a regular "
                "file."},
    {.path = "listen",
     .flag = "listen",
     .member = &Config::listen,
     .meaning = "Where clients connect: unix:PATH or host:port. Clients try the default addresses "
                "in their order. If XDG_RUNTIME_DIR is not set, the default socket is "
                "/tmp/kiln-UID/kilnd.sock. By default, nothing is reachable from other machines.",
     .flag_adds = true},
    {.path = "log_level",
     .flag = "log_level",
     .member = &Config::log_level,
     .meaning = "The least important events that are logged: debug, info, warning or error.",
     .reloads = true},
    {.path = "metrics.listen",
     .flag = "metrics_listen",
     .member = &Config::metrics_listen,
     .meaning = "host:port that serves /metrics, over HTTPS if there is TLS. \"none\", or \"\" in "
                "the file: no metrics."},
    {.path = "metrics.plain_http",
     .flag = "metrics_plain_http",
     .member = &Config::metrics_plain_http,
     .meaning = "Serves /metrics over HTTP even if there is TLS, on a loopback address only."},
    {.path = "metrics.web",
     .flag = "metrics_web",
     .member = &Config::metrics_web,
     .meaning = "Serves the web view at /web/ of the same address: devices, users, programs and "
                "kernels, for callers with a token where /metrics needs one."},
    {.path = "cache.folder",
     .flag = "cache_dir",
     .member = &Config::cache_folder,
     .meaning = "The folder of the kernel cache and of the settings of schedules; it may be "
                "read-only. If XDG_CACHE_HOME is not set, ~/.cache/kiln."},
    {.path = "cache.limit",
     .member = &Config::cache_limit_bytes,
     .meaning = "Size of the kernel cache. The least recently used kernels are dropped first."},
    {.path = "state.folder",
     .flag = "state_dir",
     .member = &Config::state_folder,
     .meaning = "The folder of the persistent data. If XDG_STATE_HOME is not set, "
                "~/.local/state/kiln."},
    {.path = "state.session_limit",
     .member = &Config::saved_sessions_limit_bytes,
     .meaning = "Disk space of all sessions that are saved over a restart."},
    {.path = "auth.system_users",
     .flag = "system_users",
     .member = &Config::system_users,
     .meaning = "Other users of this machine may use the Unix sockets, under their names, unless a "
                "user added without `--by system` has that name. Root and the user who runs kilnd "
                "are admins there."},
    {.path = "tls.certificate",
     .flag = "tls_certificate",
     .member = &Config::tls_certificate,
     .meaning = "PEM file. With it all ports use TLS.",
     .names_reloaded_file = true},
    {.path = "tls.key",
     .flag = "tls_key",
     .member = &Config::tls_key,
     .meaning = "PEM file with the certificate's private key.",
     .names_reloaded_file = true},
    {.path = "tls.client_ca",
     .flag = "tls_client_ca",
     .member = &Config::tls_client_ca,
     .meaning = "PEM file with the authorities whose certificates identify users by common name, "
                "if they were added with `--by certificate`.",
     .names_reloaded_file = true},
    {.path = "devices.use",
     .flag = "devices",
     .member = &Config::devices,
     .meaning = "Devices to use: \"cpu:0\", or all of a kind: \"cpu\". Empty: all except \"null\", "
                "which computes nothing and is for debugging, and OpenCL and Level Zero devices "
                "that share the host's memory, which \"opencl\" and \"level_zero\" include."},
    {.path = "devices.memory_limit",
     .flag = "memory_limit",
     .member = &Config::memory_limit_bytes,
     .meaning = "Memory to use of each device.",
     .zero = "all of the device's memory"},
    {.path = "devices.cpu_devices",
     .flag = "cpu_devices",
     .member = &Config::cpu_devices,
     .meaning = "CPU devices to offer, as separate devices that share the machine's threads.",
     .unit = "devices",
     .max = 64},
    {.path = "devices.cpu_threads",
     .flag = "cpu_threads",
     .member = &Config::cpu_threads,
     .meaning = "Threads of each CPU device.",
     .unit = "threads",
     .max = 4096,
     .zero = "the cores that the affinity mask and control groups allow, divided among them"},
    {.path = "devices.cpu_features",
     .flag = "cpu_features",
     .member = &Config::cpu_features,
     .meaning =
         "Vector instructions that kernels may use: avx512, avx2 or sse4.2, then exclusions: "
         "avx2,-fma,-f16c. Empty: all that the processor has."},
    {.path = "devices.run_seconds_limit",
     .flag = "run_seconds_limit",
     .member = &Config::run_seconds_limit,
     .meaning = "Predicted time of one run of a program. A kernel that takes longer on a CPU is "
                "stopped.",
     .unit = "seconds",
     .zero = "no limit"},
    {.path = "devices.health_interval_seconds",
     .member = &Config::health_interval_seconds,
     .meaning = "Time between two checks that a device computes.",
     .unit = "seconds",
     .zero = "no checks"},
    {.path = "fairness.slice_ms",
     .flag = "slice_ms",
     .member = &Config::slice_milliseconds,
     .meaning = "Programs that take longer are cut between kernels, so that other users' runs come "
                "in between.",
     .unit = "milliseconds",
     .zero = "programs are not cut"},
    {.path = "fairness.compiles_waiting_limit",
     .member = &Config::compiles_waiting_limit,
     .meaning = "Compilations of each user that wait; more are refused.",
     .unit = "compilations",
     .min = 1},
    {.path = "compiler.seconds_limit",
     .flag = "compile_seconds_limit",
     .member = &Config::compile_seconds_limit,
     .meaning = "Time to compile a kernel.",
     .unit = "seconds",
     .zero = "no limit"},
    {.path = "compiler.memory_limit",
     .flag = "compile_memory_limit",
     .member = &Config::compile_memory_limit_bytes,
     .meaning = "Memory to compile a kernel.",
     .min = kCompileMemoryMin,
     .zero = "no limit"},
    {.path = "compiler.unused_minutes_limit",
     .member = &Config::unused_minutes_limit,
     .meaning = "Programs that no session has used for this long are dropped from memory; their "
                "kernels stay in the cache.",
     .unit = "minutes",
     .zero = "programs stay while there is memory"},
    {.path = "compiler.disable_passes",
     .flag = "disable_passes",
     .member = &Config::disabled_passes,
     .meaning = "For debugging: optional passes of the compiler to skip, for example simplify and "
                "schedule; `irtool --list` names them."},
    {.path = "compiler.dump_passes",
     .flag = "dump_passes",
     .member = &Config::dumped_passes,
     .meaning = "For debugging: passes whose results `kiln explain` shows, for example normalize "
                "and lower."},
    {.path = "programs.shared",
     .flag = "programs_shared",
     .member = &Config::programs_shared,
     .meaning = "Users who send the same graph share its program and the kernels in the cache. "
                "Otherwise each user has separate ones, so that the time to compile a graph does "
                "not reveal whether another user has compiled it."},
    {.path = "tuner.idle",
     .flag = "idle_tuning",
     .member = &Config::idle_tuning,
     .meaning = "Searches for faster kernels while users do nothing, those first on which they "
                "spend most device time. Later definitions of a program have the kernels that were "
                "found, whose sums may be rounded differently. A user's work pauses a search at "
                "once."},
    {.path = "tuner.hours",
     .member = &Config::idle_tuning_hours,
     .meaning = "The hours of the day in which the daemon searches by itself, in local time: "
                "\"22-6\". Empty: always."},
    {.path = "tuner.quiet_seconds",
     .member = &Config::idle_tuning_quiet_seconds,
     .meaning = "How long no user's work must have been queued or running on a device, compiled or "
                "uploaded, before the daemon searches there, or goes on. For a CPU device, on all "
                "devices. The daemon looks once a minute for kernels to search.",
     .unit = "seconds",
     .min = 1},
    {.path = "tuner.width",
     .member = &Config::idle_tuning_width,
     .meaning = "Settings that each round of the daemon's own searches starts from. A kernel that "
                "was searched with at least this width is not searched again.",
     .unit = "settings",
     .min = 1,
     .max = 64},
    {.path = "tuner.seconds_limit",
     .member = &Config::tuning_seconds_limit,
     .meaning = "Time of one `kiln tune`, which keeps others from tuning on the device.",
     .unit = "seconds",
     .min = 1,
     .max = 86400},
    {.path = "memory.host_limit",
     .flag = "host_memory_limit",
     .member = &Config::host_memory_limit_bytes,
     .meaning = "Host memory that the daemon holds for clients, beside device memory.",
     .min = kHostMemoryMin,
     .zero = "a sixth of the machine's or the control group's memory"},
    {.path = "quota.host_memory",
     .member = quota::Resource::kHostMemory,
     .meaning = "Part of memory.host_limit.",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.device_memory",
     .member = quota::Resource::kDeviceMemory,
     .meaning = "Memory on each device.",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.sessions",
     .member = quota::Resource::kSessions,
     .meaning = "Open sessions.",
     .unit = "sessions",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.buffers",
     .member = quota::Resource::kBuffers,
     .meaning = "Tensors on devices.",
     .unit = "tensors",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.programs",
     .member = quota::Resource::kPrograms,
     .meaning = "Programs defined in sessions.",
     .unit = "programs",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.operations",
     .member = quota::Resource::kOperations,
     .meaning = "Unanswered operations; beyond it, streams are not read for a while.",
     .unit = "operations",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.graph_nodes",
     .member = quota::Resource::kGraphNodes,
     .meaning = "Nodes of one graph. No graph may have more than 262144.",
     .unit = "nodes",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.uploads",
     .member = quota::Resource::kUploads,
     .meaning = "Uploads under way.",
     .unit = "uploads",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.upload_bytes",
     .member = quota::Resource::kUploadBytes,
     .meaning = "Received bytes of unfinished uploads; beyond it, only one is read.",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.disk",
     .member = quota::Resource::kDisk,
     .meaning = "Part of state.session_limit for sessions that are saved over a restart.",
     .zero = "no other limit",
     .reloads = true},
    {.path = "quota.weight",
     .member = quota::Resource::kWeight,
     .meaning = "Share of a device's time: a user with 200 gets twice as much as one with 100.",
     .min = 1,
     .max = quota::kWeightMax,
     .reloads = true},
    {.path = "sessions.lease_seconds",
     .flag = "lease_seconds",
     .member = &Config::lease_seconds,
     .meaning = "How long a session outlives its connection, for clients that request no time.",
     .unit = "seconds",
     .min = 1,
     .max = kWeekSeconds},
    {.path = "sessions.lease_seconds_limit",
     .member = &Config::lease_seconds_limit,
     .meaning = "Upper bound of any lease.",
     .unit = "seconds",
     .min = 1,
     .max = kWeekSeconds},
    {.path = "sessions.detach_hours_limit",
     .member = &Config::detach_hours_limit,
     .meaning = "Upper bound of the lease of a session that was detached under a name.",
     .unit = "hours",
     .max = kYearHours},
    {.path = "sessions.limit",
     .flag = "session_limit",
     .member = &Config::session_limit,
     .meaning = "Open sessions of all users. One user may have as many as are still free, or "
                "eight.",
     .unit = "sessions",
     .min = 1,
     .max = 1'000'000},
    {.path = "sessions.idle_connection_seconds",
     .member = &Config::idle_connection_seconds,
     .meaning = "A connection without a call for this long is closed. Clients reconnect "
                "automatically.",
     .unit = "seconds",
     .min = 1,
     .max = kWeekSeconds},
    {.path = "sessions.ping_answer_seconds",
     .flag = "ping_answer_seconds",
     .member = &Config::ping_answer_seconds,
     .meaning = "A connection without an answer to a ping in this time is closed.",
     .unit = "seconds",
     .min = 1,
     .max = kWeekSeconds},
    {.path = "sessions.blob_limit",
     .flag = "blob_limit",
     .member = &Config::blob_limit_bytes,
     .meaning = "Part of the host memory for uploads.",
     .zero = "all of it"},
};

std::string AmountText(const Key& key, int64_t amount) {
  return TypeOf(key) == Type::kBytes ? BytesText(amount) : absl::StrCat(amount);
}

bool HasMax(const Key& key) {
  return key.max < (TypeOf(key) == Type::kBytes ? kAnyBytesMax : kAnyNumberMax);
}

}  // namespace

absl::Span<const Key> Keys() { return kKeys; }

absl::Span<const Section> Sections() { return kSections; }

const Key* FindKey(absl::string_view Key::*by, absl::string_view name) {
  for (const Key& key : kKeys)
    if (!name.empty() && key.*by == name) return &key;
  return nullptr;
}

bool IsSection(absl::string_view name) {
  return !name.empty() &&
         absl::c_any_of(kSections, [&](const Section& section) { return section.name == name; });
}

absl::string_view SectionOf(const Key& key) {
  const size_t dot = key.path.find('.');
  return dot == absl::string_view::npos ? "" : key.path.substr(0, dot);
}

absl::string_view NameOf(const Key& key) {
  const size_t dot = key.path.find('.');
  return dot == absl::string_view::npos ? key.path : key.path.substr(dot + 1);
}

std::string LabelOf(const Key& key) {
  return key.path.empty() ? absl::StrCat("--", key.flag) : std::string(key.path);
}

Type TypeOf(const Key& key) {
  if (const auto* resource = std::get_if<quota::Resource>(&key.member))
    return quota::RowOf(*resource).is_bytes ? Type::kBytes : Type::kNumber;
  return static_cast<Type>(key.member.index());
}

absl::string_view Wanted(Type type) {
  constexpr absl::string_view kWanted[] = {"a string", "an array of strings", "true or false",
                                           "an integer of 0 or more",
                                           "a number of bytes such as \"512MiB\""};
  return kWanted[static_cast<size_t>(type)];
}

Value Get(const Key& key, const Config& config) {
  return std::visit(
      [&](auto member) -> Value {
        if constexpr (std::is_same_v<decltype(member), quota::Resource>) {
          return config.quota[member];
        } else if constexpr (std::is_same_v<decltype(member), int Config::*>) {
          return int64_t{config.*member};
        } else {
          return config.*member;
        }
      },
      key.member);
}

void Set(const Key& key, Value value, Config* config) {
  std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), quota::Resource>) {
          config->quota[member] = std::get<int64_t>(value);
        } else if constexpr (std::is_same_v<decltype(member), int Config::*>) {
          config->*member = static_cast<int>(std::get<int64_t>(value));
        } else {
          using Member = std::remove_reference_t<decltype(config->*member)>;
          config->*member = std::get<Member>(std::move(value));
        }
      },
      key.member);
}

std::vector<const Key*> Differences(const Config& one, const Config& other) {
  std::vector<const Key*> keys;
  for (const Key& key : kKeys)
    if (Get(key, one) != Get(key, other)) keys.push_back(&key);
  return keys;
}

bool IsInRange(const Key& key, int64_t number) {
  return (number >= key.min && number <= key.max) || (number == 0 && !key.zero.empty());
}

std::string RangeText(const Key& key) {
  const bool has_zero_apart = key.min > 0 && !key.zero.empty();
  return absl::StrCat(has_zero_apart ? "0, or " : "", AmountText(key, key.min),
                      HasMax(key) ? absl::StrCat(" to ", AmountText(key, key.max)) : " or more");
}

std::string BytesText(int64_t bytes) {
  constexpr std::pair<int64_t, absl::string_view> kUnits[] = {
      {int64_t{1} << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits)
    if (bytes != 0 && bytes % unit == 0) return absl::StrCat(bytes / unit, name);
  return absl::StrCat(bytes);
}

}  // namespace kiln::config
