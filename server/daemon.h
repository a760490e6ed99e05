// The whole daemon in one object: everything that serves, wired together. main.cc runs one; tests
// run several in a process.
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
#include "drivers/interface/driver.h"
#include "server/clock/clock.h"
#include "server/config/config.h"
#include "server/runtime/program_cache.h"

namespace kiln {

// What the daemon is made of; daemon_parts.h makes kilnd's, tests make their own.
struct DaemonParts {
  std::vector<std::unique_ptr<drivers::Driver>> drivers;
  runtime::CompileFunction compile;
  std::function<absl::StatusOr<std::string>(const drivers::KernelImage&, const drivers::Target&)>
      disassemble;
  // Starts a process that compiles kernels (compiler/workers/worker.h), or finishes them. Empty:
  // `compile` makes them in this process, and devices load them as they are.
  std::vector<std::string> compile_worker;
  Clock clock;
  absl::Duration lease_check_interval = absl::Milliseconds(250);
  int64_t memory_bytes = int64_t{4} << 30;  // of the machine, or what this process may have of it
  // For a piece of a tensor on its way to or from a device when sessions are kept or restored; a
  // device that takes longer hangs.
  absl::Duration copy_patience = absl::Minutes(1);
  // How long clients may take to read their last answers before connections are cut.
  absl::Duration flush_time = absl::Seconds(2);
  // The clock of the limit on a kernel's compile time.
  std::function<std::chrono::steady_clock::time_point()> steady_now =
      std::chrono::steady_clock::now;
  // Called with a device's name when the daemon's end has to wait for that device, on the thread
  // that waits. May be empty.
  std::function<void(const std::string& device)> on_wait;
  // An admin asks for the daemon's end: has Stop called soon, with Sessions::kKeep, on another
  // thread. Empty: nobody can.
  std::function<void()> request_stop;
};

class Daemon {
 public:
  // Opens the devices and starts to serve. The error names what stands in the way, and what to do.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const config::Config& config,
                                                       DaemonParts parts);
  // Stops, if Stop was not called.
  ~Daemon();

  // Where it listens, with the ports that were picked.
  std::vector<std::string> listening() const;
  // Port of /metrics; 0 if none is served.
  int metrics_port() const;
  // False if what looks after leases and devices has not gone round for a minute: it hangs.
  bool IsAlive() const;
  // How many rounds of that have ended, for tests.
  int64_t rounds() const;
  // What a scrape of /metrics gets.
  std::string MetricsText() const;

  // What becomes of the sessions. kEnd: operations that have not run are answered with UNAVAILABLE,
  // SHUTTING_DOWN, and everything is lost. kKeep: they are written to the state folder, and the
  // next daemon there goes on with them; clients hear UNAVAILABLE, RESTARTING. One that cannot be
  // kept is ended, and the log says why.
  enum class Sessions { kEnd, kKeep };
  // Takes nothing new, lets what is on the devices finish (for `grace` at most) and ends all
  // connections. Idempotent. False if something still runs on a device: then the destructor waits
  // for it.
  bool Stop(absl::Duration grace = absl::Seconds(3), Sessions sessions = Sessions::kEnd);

 private:
  struct Implementation;
  explicit Daemon(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

// "0.1.0".
std::string DaemonVersion();

}  // namespace kiln

#endif  // KILN_SERVER_DAEMON_H_
