// The daemon's configuration: defaults that work without a file, a TOML file, and flags that
// override it.
//
// The daemon's default addresses, in the order in which clients try them:
//   unix:$XDG_RUNTIME_DIR/kiln/kilnd.sock    or, if XDG_RUNTIME_DIR is not set,
//   unix:/tmp/kiln-<uid>/kilnd.sock 127.0.0.1:7433
// Metrics are on 127.0.0.1:7434. By default, nothing is reachable from other machines.
//
// The file, with the defaults:
//
// clang-format off
//   listen = ["unix:/run/user/1000/kiln/kilnd.sock", "127.0.0.1:7433"]
//   log_level = "info"                 # debug, info, warning, error
//
//   [metrics]
//   listen = "127.0.0.1:7434"          # "": no metrics; over HTTPS if there is TLS
//   plain_http = false                 # HTTP even with TLS, on a loopback address only
//
//   [cache]
//   folder = "/home/ann/.cache/kiln"   # $XDG_CACHE_HOME/kiln, else ~/.cache/kiln; may be read-only
//   limit = "4GiB"
//
//   [state]
//   folder = "/home/ann/.local/state/kiln"  # persistent data that is not a cache: users, limits,
//                                      # sessions; $XDG_STATE_HOME/kiln, else ~/.local/state/kiln
//   session_limit = "64GiB"            # of disk, for all sessions saved over a restart
//
//   [auth]
//   system_users = false               # other users of this machine may use the Unix sockets,
//                                      # under their names, unless a user added without `--by
//                                      # system` has that name; root and the user who runs kilnd
//                                      # are admins there
//
//   [tls]                              # for all ports; required to listen beyond loopback
//   certificate = ""                   # PEM files, reloaded when they change
//   key = ""
//   client_ca = ""                     # its certificates identify users by common name, if users
//                                      # were added with `--by certificate`
//
//   [devices]
//   use = []                           # ["cpu:0"], or all of a kind: ["cpu"]; empty: all except
//                                      # "null", which computes nothing and is for debugging, and
//                                      # OpenCL and Level Zero devices that share the host's
//                                      # memory, which "opencl" and "level_zero" include
//   memory_limit = "0"                 # of each device; 0: the device's memory
//   cpu_devices = 1                    # cpu:0 … as separate devices that share the machine's
//                                      # threads
//   cpu_threads = 0                    # of each of them; 0: the cores that the affinity mask and
//                                      # control groups allow, divided among them
//   cpu_features = ""                  # vector instructions for kernels: "avx512", "avx2" or
//                                      # "sse4.2", then exclusions ("avx2,-fma,-f16c"); "": all
//   run_seconds_limit = 600            # predicted time of one run of a program; a kernel that
//                                      # takes longer on a CPU is stopped; 0: no limit
//   health_interval_seconds = 10       # between two checks that a device computes; 0: no checks
//
//   [fairness]
//   slice_ms = 10                      # programs that take longer are cut between kernels, so that
//                                      # other users' runs come in between; 0: programs are not cut
//   compiles_waiting_limit = 1024      # of each user; more are refused
//
//   [compiler]
//   seconds_limit = 60                 # for each kernel; 0: no limit
//   memory_limit = "4GiB"              # likewise
//   unused_minutes_limit = 60          # programs that no session has used for this long are
//                                      # dropped from memory; their kernels stay in the cache; 0:
//                                      # programs stay while there is memory
//                                      # for debugging; `irtool --list` names the passes:
//   disable_passes = []                # optional passes to skip: ["simplify", "schedule"]
//   dump_passes = []                   # results that `kiln explain` shows: ["normalize", "lower"]
//
//   [programs]
//   shared = true                      # one program for all users who send the same graph, and its
//                                      # kernels in the cache; false: one for each user, so that
//                                      # the time to compile a graph does not reveal whether
//                                      # another user has compiled it
//
//   [memory]
//   host_limit = "0"                   # host memory that the daemon holds for clients; 0: a sixth
//                                      # of the machine's or the control group's memory
//
//   [quota]                            # of each user; 0: only the limits for all users together.
//                                      # `kiln quota set` changes it for one user
//   host_memory = "0"                  # of memory.host_limit
//   device_memory = "0"                # on each device
//   sessions = 0
//   buffers = 1048576                  # tensors on devices
//   programs = 16384                   # defined in sessions
//   operations = 65536                 # unanswered; beyond it, streams are not read for a while
//   graph_nodes = 262144               # of one graph; 262144 is the maximum
//   uploads = 256                      # under way
//   upload_bytes = "0"                 # received of unfinished uploads; beyond it only one is read
//   disk = "0"                         # for sessions saved over a restart, of state.session_limit
//   weight = 100                       # share of a device's time: 200 gets twice as much as 100
//
//   [sessions]
//   lease_seconds = 900                # how long a session outlives its connection, for clients
//                                      # that request no time
//   lease_seconds_limit = 3600         # upper bound of any lease
//   detach_hours_limit = 168           # the same for sessions that were detached under a name
//   limit = 1024                       # open sessions of all users; one user may have as many as
//                                      # are still free, or eight
//   idle_connection_seconds = 120      # a connection without a call for this long is closed;
//                                      # clients reconnect automatically
//   ping_answer_seconds = 10           # a connection without an answer to a ping in this time is
//                                      # closed
//   blob_limit = "0"                   # of the host memory, for uploads; 0: all of it
// clang-format on
//
// By default CPU devices may use three quarters of the memory, and clients' data in the daemon
// another sixth; the rest is for the process itself.
#ifndef KILN_SERVER_CONFIG_CONFIG_H_
#define KILN_SERVER_CONFIG_CONFIG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/text/byte_count.h"
#include "server/quota/resource.h"

namespace kiln::config {

inline constexpr int kPort = 7433;
inline constexpr int kMetricsPort = 7434;

struct Config {
  std::vector<std::string> listen;  // "unix:PATH" or "host:port"
  std::string metrics_listen;       // "host:port"; empty: no metrics
  bool metrics_plain_http = false;  // without TLS, even if there is a certificate
  std::string cache_folder;
  int64_t cache_limit_bytes = int64_t{4} << 30;
  std::string state_folder;
  bool system_users = false;
  bool new_token_key = false;   // replaces a lost key; existing tokens become invalid
  std::string tls_certificate;  // empty: no TLS
  std::string tls_key;
  std::string tls_client_ca;
  int64_t saved_sessions_limit_bytes = int64_t{64} << 30;
  std::vector<std::string> devices;  // empty: all by default
  int64_t memory_limit_bytes = 0;    // of each device; 0: all of its memory
  int cpu_devices = 1;
  int cpu_threads = 0;
  std::string cpu_features;  // in the CPU driver's syntax
  int lease_seconds = 900;
  int lease_seconds_limit = 3600;
  int detach_hours_limit = 168;
  int session_limit = 1024;
  int idle_connection_seconds = 120;
  int ping_answer_seconds = 10;
  int64_t blob_limit_bytes = 0;         // 0: within host_memory_limit_bytes
  int64_t host_memory_limit_bytes = 0;  // 0: a fraction of the machine's memory
  int run_seconds_limit = 600;          // 0: no limit
  int health_interval_seconds = 10;     // 0: no checks
  int slice_milliseconds = 10;          // 0: programs are not cut
  int compiles_waiting_limit = 1024;    // of each user
  quota::Limits quota;                  // of each user without other limits
  // Of one kernel's compilation; 0: no limit.
  int compile_seconds_limit = 60;
  int64_t compile_memory_limit_bytes = int64_t{4} << 30;
  int unused_minutes_limit = 60;  // of programs; 0: no limit
  bool programs_shared = true;    // among users
  // Names of passes (compiler/pipeline.h).
  std::vector<std::string> disabled_passes;
  std::vector<std::string> dumped_passes;
  std::string log_level = "info";
};

// The process's environment; injected, so tests can supply their own. Unset variables are nullopt.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// The configuration without a file and flags.
Config Defaults(const Environment& environment, int user_id);

// Overrides `config` with a file's text. INVALID_ARGUMENT: "file:line: the error".
absl::Status ApplyToml(const std::string& text, const std::string& file, Config* config);
// The same with the file's content. NOT_FOUND if it cannot be read.
absl::Status ApplyFile(const std::string& path, Config* config);

// INVALID_ARGUMENT for values that are invalid from any source (a malformed address, a negative
// number).
absl::Status Check(const Config& config);

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_CONFIG_H_
