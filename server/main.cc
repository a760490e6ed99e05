// kilnd: flags and signals; daemon.h has the rest.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "compiler/workers/worker.h"
#include "server/config/flags.h"
#include "server/daemon.h"
#include "server/daemon_parts.h"
#include "server/log/log.h"
#include "server/service_manager.h"

namespace {

// WaitForStop takes them with sigtimedwait(2), on a thread that may do anything, where a handler
// may call almost nothing (signal-safety(7)).
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Whoever reads our log or a connection may go away; the write then fails with EPIPE and no more.
  signal(SIGPIPE, SIG_IGN);
  // Ignored, as whoever starts us may have left it, children would vanish before they are waited
  // for.
  signal(SIGCHLD, SIG_DFL);
  return signals;
}

// Each connection takes a file descriptor. The soft limit is often 1,024, for the sake of programs
// that use select(2), where the hard one is hundreds of times as much.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// How often systemd hears that the daemon is alive.
absl::Duration AliveInterval(const kiln::ServiceManager& manager) {
  return std::min(manager.watchdog_interval(), absl::Minutes(1));
}

// Tells systemd meanwhile that the daemon is alive, as long as it is. Returns what becomes of the
// sessions: kilnd is stopped for good by whoever sits before it, and to be started again, perhaps
// as another build, by whoever looks after the machine.
kiln::Daemon::Sessions WaitForStop(const sigset_t& signals, const kiln::ServiceManager& manager,
                                   const kiln::Daemon& daemon) {
  const timespec interval = absl::ToTimespec(AliveInterval(manager));
  int received = -1;
  while (received < 0) {
    if (daemon.IsAlive()) manager.Alive();
    received = sigtimedwait(&signals, nullptr, &interval);
  }
  kiln::log::Info("signal", {{"signal", received == SIGTERM ? "SIGTERM" : "SIGINT"}});
  return received == SIGTERM ? kiln::Daemon::Sessions::kKeep : kiln::Daemon::Sessions::kEnd;
}

// False if something still runs. Large sessions take minutes to write: how long that may go on is
// for systemd's TimeoutStopSec to say, not for the watchdog.
bool Stop(kiln::Daemon& daemon, kiln::Daemon::Sessions sessions,
          const kiln::ServiceManager& manager) {
  absl::Notification stopped;
  std::thread alive([&] {
    while (!stopped.WaitForNotificationWithTimeout(AliveInterval(manager))) manager.Alive();
  });
  manager.Alive();
  const bool idle = daemon.Stop(absl::Seconds(3), sessions);
  stopped.Notify();
  alive.join();
  return idle;
}

int Fail(const absl::Status& status) {
  kiln::log::Error("cannot_start", {{"why", std::string(status.message())}});
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  kiln::log::SetClock(absl::Now);
  // Debian builds Abseil with its search for lock cycles, which makes a replay a tenth slower. The
  // tests under ThreadSanitizer find cycles.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // The daemon starts itself again for what may end its process: compiling, and vendors' libraries.
  if (kiln::workers::IsWorker(argc, argv))
    return kiln::workers::RunWorker(argc, argv, kiln::ProductionJobs());
  if (kiln::IsProbe(argc, argv)) return kiln::RunProbe(argc, argv);
  const auto config = kiln::config::FromCommandLine(argc, argv, kiln::config::ProcessEnvironment(),
                                                    static_cast<int>(geteuid()));
  if (!config.ok()) return Fail(config.status());
  kiln::log::Level level = kiln::log::Level::kInfo;
  kiln::log::ParseLevel(config->log_level, &level);
  kiln::log::SetLevel(level);
  RaiseDescriptorLimit();
  // Before any thread starts, so that all inherit the mask.
  const sigset_t signals = BlockStopSignals();
  auto parts = kiln::ProductionParts(*config);
  if (!parts.ok()) return Fail(parts.status());
  // WaitForStop takes it.
  parts->request_stop = [] { kill(getpid(), SIGTERM); };
  auto daemon = kiln::Daemon::Start(*config, *std::move(parts));
  if (!daemon.ok()) return Fail(daemon.status());
  const kiln::ServiceManager manager(kiln::config::ProcessEnvironment(), getpid());
  manager.Ready();
  const kiln::Daemon::Sessions sessions = WaitForStop(signals, manager, **daemon);
  manager.Stopping();
  // What hangs on a device cannot be ended but with the process.
  if (!Stop(**daemon, sessions, manager)) _exit(0);
  return 0;
}
