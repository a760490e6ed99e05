// The daemon's configuration: defaults that work with none, a TOML file, and flags over it.
//
// Where the daemon listens when nothing is said, and where clients look for it, in this order:
//   unix:$XDG_RUNTIME_DIR/kiln/kilnd.sock    or, if XDG_RUNTIME_DIR is not set,
//   unix:/tmp/kiln-<uid>/kilnd.sock 127.0.0.1:7433
// Metrics are on 127.0.0.1:7434. Nothing is reachable from other machines by default.
//
// The file, with the defaults:
//
// clang-format off
//   listen = ["unix:/run/user/1000/kiln/kilnd.sock", "127.0.0.1:7433"]
//   log_level = "info"                 # debug, info, warning, error
//
//   [metrics]
//   listen = "127.0.0.1:7434"          # "" serves none; over HTTPS where there is TLS
//   plain_http = false                 # over HTTP all the same, on a loopback address
//
//   [cache]
//   folder = "/home/ann/.cache/kiln"   # $XDG_CACHE_HOME/kiln, else ~/.cache/kiln; one that cannot be written
//                                      # to is read
//   limit = "4GiB"
//
//   [state]
//   folder = "/home/ann/.local/state/kiln"  # what outlives the daemon and is no cache: users, limits,
//                                      # sessions; $XDG_STATE_HOME/kiln, else ~/.local/state/kiln
//   session_limit = "64GiB"            # of disk, for all sessions that a daemon keeps for the next one
//
//   [auth]
//   system_users = false               # other users of this machine may use the Unix sockets, under their
//                                      # names, unless a user who was added without `--by system` has that name;
//                                      # who runs kilnd, and root, are its admins there
//
//   [tls]                              # of all ports; beyond loopback there is no listening without
//   certificate = ""                   # PEM files, read again when they change
//   key = ""
//   client_ca = ""                     # whose certificates are users', by their common names, if the users were
//                                      # added with `--by certificate`
//
//   [devices]
//   use = []                           # ["cpu:0"], or all of a kind: ["cpu"]; empty: all but "null", which
//                                      # computes nothing and is for debugging, and but those of OpenCL's
//                                      # that share the host's memory, which "opencl" takes, too
//   memory_limit = "0"                 # of each device; 0: what the device has
//   cpu_devices = 1                    # cpu:0 … as separate devices that share the machine's threads
//   cpu_threads = 0                    # of each of them; 0: the cores that the affinity mask and control
//                                      # groups allow, divided among them
//   cpu_features = ""                  # vector instructions for kernels: "avx512", "avx2" or "sse4.2", then
//                                      # what to leave out ("avx2,-fma,-f16c"); "": all there are
//   run_seconds_limit = 600            # predicted time of one run of a program; a kernel that takes longer
//                                      # on a CPU is stopped; 0: none
//   health_interval_seconds = 10       # between two tries whether a device still computes; 0: none
//
//   [fairness]
//   slice_ms = 10                      # programs that take longer are cut between kernels, so that others'
//                                      # runs come in between; 0: they are not
//   compiles_waiting_limit = 1024      # of each user; what comes then is refused
//
//   [compiler]
//   seconds_limit = 60                 # for a kernel; 0: none
//   memory_limit = "4GiB"              # likewise
//   unused_minutes_limit = 60          # programs that no session has named for so long leave memory; the cache
//                                      # keeps their kernels; 0: they stay while there is room
//                                      # for debugging; `irtool --list` names the passes:
//   disable_passes = []                # optional passes to leave out: ["simplify", "schedule"]
//   dump_passes = []                   # those whose outcome `kiln explain` shows: ["normalize", "lower"]
//
//   [programs]
//   shared = true                      # one program for all users who send the same graph, and its kernels in the
//                                      # cache; false: each has their own, so that how long a graph takes to be
//                                      # compiled does not tell whether another user has compiled it
//
//   [memory]
//   host_limit = "0"                   # what clients make the daemon hold beside device memory; 0: a sixth
//                                      # of the machine's memory or control group's
//
//   [quota]                            # of each user; 0: none but what holds for all together.
//                                      # `kiln quota set` changes it for one of them
//   host_memory = "0"                  # of memory.host_limit
//   device_memory = "0"                # on each device
//   sessions = 0
//   buffers = 1048576                  # tensors on devices
//   programs = 16384                   # that the sessions have defined
//   operations = 65536                 # unanswered; then streams are not read for a while
//   graph_nodes = 262144               # of one graph; 262144 are the most there can be
//   uploads = 256                      # under way
//   upload_bytes = "0"                 # received of unfinished uploads; beyond it only the oldest is read
//   disk = "0"                         # for sessions kept over a restart, of state.session_limit
//   weight = 100                       # of a device's time: who has 200 gets twice as much as the others
//
//   [sessions]
//   lease_seconds = 900                # how long what a client holds outlives its connection, for clients that
//                                      # name no time
//   lease_seconds_limit = 3600         # whatever they name, and however much the row above says
//   detach_hours_limit = 168           # the same for sessions that were detached under a name
//   limit = 1024                       # open at once, of all users
//                                      # one user may have as many as are still free, or eight
//   idle_connection_seconds = 120      # a connection on which no call is under way for so long is closed;
//                                      # clients connect again by themselves
//   ping_answer_seconds = 10           # a connection that leaves a ping unanswered for so long is closed
//   blob_limit = "0"                   # of the host memory, for uploads; 0: as much as there is
// clang-format on
//
// By default a CPU's devices may have three quarters of the memory, and clients a sixth besides;
// the rest is the process' own.
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
  std::string metrics_listen;       // "host:port"; empty: none
  bool metrics_plain_http = false;  // without TLS, even if there is a certificate
  std::string cache_folder;
  int64_t cache_limit_bytes = int64_t{4} << 30;
  std::string state_folder;
  bool system_users = false;
  bool new_token_key = false;   // where the old one is lost, and users' tokens with it
  std::string tls_certificate;  // empty: no TLS
  std::string tls_key;
  std::string tls_client_ca;
  int64_t kept_sessions_limit_bytes = int64_t{64} << 30;
  std::vector<std::string> devices;  // empty: all
  int64_t memory_limit_bytes = 0;    // of each device; 0: what it has
  int cpu_devices = 1;
  int cpu_threads = 0;
  std::string cpu_features;  // the CPU driver knows which there are
  int lease_seconds = 900;
  int lease_seconds_limit = 3600;
  int detach_hours_limit = 168;
  int session_limit = 1024;
  int idle_connection_seconds = 120;
  int ping_answer_seconds = 10;
  int64_t blob_limit_bytes = 0;         // 0: within host_memory_limit_bytes
  int64_t host_memory_limit_bytes = 0;  // 0: a share of what there is
  int run_seconds_limit = 600;          // 0: none
  int health_interval_seconds = 10;     // 0: none
  int slice_milliseconds = 10;          // 0: programs are not cut
  int compiles_waiting_limit = 1024;    // of each user
  quota::Limits quota;                  // of each user for whom nothing else is set
  // Of one kernel that is compiled; 0: none.
  int compile_seconds_limit = 60;
  int64_t compile_memory_limit_bytes = int64_t{4} << 30;
  int unused_minutes_limit = 60;  // of programs; 0: none
  bool programs_shared = true;    // by users
  // The compiler knows which there are (compiler/pipeline.h).
  std::vector<std::string> disabled_passes;
  std::vector<std::string> dumped_passes;
  std::string log_level = "info";
};

// The process' environment; handed in, so that tests make their own. Unset variables are nullopt.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// What holds with no file and no flags.
Config Defaults(const Environment& environment, int user_id);

// Overrides `config` with a file's text. INVALID_ARGUMENT is "file:line: what is wrong".
absl::Status ApplyToml(const std::string& text, const std::string& file, Config* config);
// The same with the file's content. NOT_FOUND if it cannot be read.
absl::Status ApplyFile(const std::string& path, Config* config);

// INVALID_ARGUMENT for values that no source may set (a malformed address, a negative number).
absl::Status Check(const Config& config);

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_CONFIG_H_
