// The whole daemon in one object: all services, wired together. main.cc runs one; tests run several
// in one process.
#ifndef KILN_SERVER_DAEMON_H_
#define KILN_SERVER_DAEMON_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/workers/kernel_compiler.h"
#include "drivers/interface/driver.h"
#include "server/clock/clock.h"
#include "server/config/config.h"
#include "server/runtime/cache/program_cache.h"
#include "server/tuner/tuner.h"

namespace kiln {

// The daemon's dependencies: daemon_parts.h makes kilnd's, tests make their own.
struct DaemonParts {
  std::vector<std::unique_ptr<drivers::Driver>> drivers;
  runtime::CompileFunction compile;
  std::function<absl::StatusOr<std::string>(const drivers::KernelImage&, const drivers::Target&)>
      disassemble;
  // The command of a process that compiles kernels (compiler/workers/worker.h), or finishes them.
  // Empty: `compile` compiles them in this process, and devices load them unfinished.
  std::vector<std::string> compile_worker;
  // Runs the candidates of searches for schedules. Empty: the daemon does not search.
  tuner::MakeTrialRunner make_trial_runner;
  // The folder of settings that are installed with the daemon (tuner/shipped_settings.h); empty:
  // none.
  std::string shipped_settings;
  // Compiles the candidates if there is no compile_worker.
  workers::CompileFunction compile_candidate;
  Clock clock;
  absl::Duration lease_check_interval = absl::Milliseconds(250);
  int64_t memory_bytes = int64_t{4} << 30;  // of the machine, or this process's limit
  // The time limit for copying a piece of a tensor to or from a device when sessions are saved or
  // restored; a device that takes longer is considered hung.
  absl::Duration copy_timeout = absl::Minutes(1);
  // The time that clients have to read their last answers before connections are closed.
  absl::Duration flush_time = absl::Seconds(2);
  // The clock for the limit on a kernel's compile time.
  std::function<std::chrono::steady_clock::time_point()> steady_now =
      std::chrono::steady_clock::now;
  // Called with a device's name if stopping the daemon has to wait for that device, on the waiting
  // thread. May be empty.
  std::function<void(const std::string& device)> on_wait;
  // Called when an admin stops the daemon: must cause a call of Stop with Sessions::kKeep soon, on
  // another thread. Empty: the daemon cannot be stopped this way.
  std::function<void()> request_stop;
};

class Daemon {
 public:
  // Opens the devices and starts serving. An error names the obstacle and the remedy.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const config::Config& config,
                                                       DaemonParts parts);
  // Stops the daemon, if Stop was not called.
  ~Daemon();

  // Applies the keys of a checked configuration that can change while the daemon runs, and reads
  // users, limits and certificates again. Logs "reloaded" with the keys that have changed, and with
  // those for which the daemon must be started again. A file that cannot be read is logged
  // as "reload_failed", and its old content stays in use. Thread-safe.
  void Reload(const config::Config& config);

  // The addresses it listens on, with the chosen ports.
  std::vector<std::string> listening() const;
  // The port of /metrics; 0 if no metrics are served.
  int metrics_port() const;
  // False if the periodic tasks (leases, devices) have not completed a round for a minute, so they
  // hang.
  bool IsAlive() const;
  // The number of completed rounds, for tests.
  int64_t rounds() const;
  // The response to a scrape of /metrics.
  std::string MetricsText() const;

  // kEnd: operations that have not run are answered with UNAVAILABLE, SHUTTING_DOWN, and all
  // sessions are lost. kKeep: sessions are written to the state folder, and the next daemon there
  // continues them; clients get UNAVAILABLE, RESTARTING. A session that cannot be saved is closed,
  // and the log says why.
  enum class Sessions { kEnd, kKeep };
  // Accepts nothing new, lets work on the devices finish (for at most `grace`) and closes all
  // connections. Idempotent. Returns false if something still runs on a device, for which the
  // destructor then waits, or if the sensors of one hang.
  bool Stop(absl::Duration grace = absl::Seconds(3), Sessions sessions = Sessions::kEnd);

 private:
  struct Implementation;
  explicit Daemon(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

// Returns what would keep a daemon with this configuration from starting, beyond config::Problems,
// as far as that is known without starting it: passes, certificates, addresses.
std::vector<std::string> StartProblems(const config::Config& config);

// Returns the version, such as "0.2.0".
std::string DaemonVersion();
// Returns the commit of the sources that it was built from, or "unknown".
std::string DaemonCommit();

}  // namespace kiln

#endif  // KILN_SERVER_DAEMON_H_
