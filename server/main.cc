// kilnd: flags and signals; daemon.h has the rest.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "compiler/workers/worker.h"
#include "server/config/documents.h"
#include "server/config/flags.h"
#include "server/daemon.h"
#include "server/daemon_parts.h"
#include "server/log/log.h"
#include "server/one_shot.h"
#include "server/service_manager.h"
#include "server/version_text.h"

namespace {

// WaitForSignals receives them with sigtimedwait(2), on a normal thread; a signal handler could
// call almost nothing (signal-safety(7)).
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // The reader of the log or of a connection may disappear; a write then just fails with EPIPE.
  signal(SIGPIPE, SIG_IGN);
  // If SIGCHLD is ignored, as the parent process may have set it, children vanish before they are
  // waited for.
  signal(SIGCHLD, SIG_DFL);
  return signals;
}

// Each connection takes a file descriptor. The soft limit is often 1,024, for programs that use
// select(2); the hard limit is hundreds of times larger.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// How often systemd is told that the daemon is alive.
absl::Duration AliveInterval(const kiln::ServiceManager& manager) {
  return std::min(manager.watchdog_interval(), absl::Minutes(1));
}

// The command line, which is read again with the file that it names.
struct CommandLine {
  int argc;
  char** argv;

  kiln::config::Loaded Load() const {
    return kiln::config::Load(argc, argv, kiln::config::ProcessEnvironment(),
                              static_cast<int>(geteuid()));
  }
  bool Has(absl::string_view flag) const {
    return std::any_of(argv, argv + argc, [&](absl::string_view word) { return word == flag; });
  }
};

// A configuration with a mistake changes nothing.
void Reload(const CommandLine& command, kiln::Daemon& daemon) {
  const kiln::config::Loaded loaded = command.Load();
  const absl::Status status = kiln::config::Joined(loaded.problems);
  if (status.ok()) return daemon.Reload(loaded.config);
  kiln::log::Error("reload_failed", {{"file", loaded.config.file},
                                     {"why", std::string(status.message())},
                                     {"so", "the values in use stay"}});
}

// Waits for a signal to stop, reloads at SIGHUP, and meanwhile tells systemd that the daemon is
// alive, as long as it is. Returns what to do with the sessions: SIGINT, from a terminal, ends
// kilnd for good; SIGTERM, from the system, is followed by a restart, perhaps with another build.
kiln::Daemon::Sessions WaitForSignals(const sigset_t& signals, const kiln::ServiceManager& manager,
                                      const CommandLine& command, kiln::Daemon& daemon) {
  const timespec interval = absl::ToTimespec(AliveInterval(manager));
  int received = -1;
  while (received != SIGTERM && received != SIGINT) {
    if (daemon.IsAlive()) manager.Alive();
    received = sigtimedwait(&signals, nullptr, &interval);
    if (received == SIGHUP) Reload(command, daemon);
  }
  kiln::log::Info("signal", {{"signal", received == SIGTERM ? "SIGTERM" : "SIGINT"}});
  return received == SIGTERM ? kiln::Daemon::Sessions::kKeep : kiln::Daemon::Sessions::kEnd;
}

// Returns false if something still runs. Writing large sessions takes minutes, so this is limited
// by systemd's TimeoutStopSec, not by the watchdog.
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
  // Debian builds Abseil with lock cycle detection, which makes a replay a tenth slower. Tests
  // under ThreadSanitizer find such cycles.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // The daemon starts itself again for work that may crash its process: compiling, candidates of
  // a search, and vendors' libraries.
  if (kiln::workers::IsWorker(argc, argv))
    return kiln::workers::RunWorker(argc, argv, kiln::ProductionJobs());
  if (kiln::IsTrialProcess(argc, argv)) kiln::RunTrials(argv);
  if (kiln::IsProbe(argc, argv)) return kiln::RunProbe(argc, argv);
  const CommandLine command{argc, argv};
  if (command.Has("--version") || command.Has("--help") || command.Has("-help")) {
    std::cout << (command.Has("--version") ? kiln::VersionText() : kiln::config::HelpText());
    return std::cout.flush() ? 0 : 1;
  }
  const kiln::config::Loaded loaded = command.Load();
  if (const auto status = kiln::RunOneShot(loaded, absl::Now(), std::cout, std::cerr))
    return std::cout.flush() ? *status : 1;
  if (absl::Status status = kiln::config::Joined(loaded.problems); !status.ok())
    return Fail(status);
  const kiln::config::Config& config = loaded.config;
  kiln::log::Level level = kiln::log::Level::kInfo;
  kiln::log::ParseLevel(config.log_level, &level);
  kiln::log::SetLevel(level);
  RaiseDescriptorLimit();
  // Before any thread starts, so that all threads inherit the mask.
  const sigset_t signals = BlockSignals();
  auto parts = kiln::ProductionParts(config);
  if (!parts.ok()) return Fail(parts.status());
  // Received by WaitForSignals.
  parts->request_stop = [] { kill(getpid(), SIGTERM); };
  auto daemon = kiln::Daemon::Start(config, *std::move(parts));
  if (!daemon.ok()) return Fail(daemon.status());
  const kiln::ServiceManager manager(kiln::config::ProcessEnvironment(), getpid());
  manager.Ready();
  const kiln::Daemon::Sessions sessions = WaitForSignals(signals, manager, command, **daemon);
  manager.Stopping();
  // A thread that hangs on a device can only be ended with the process.
  if (!Stop(**daemon, sessions, manager)) _exit(0);
  return 0;
}
