// The dependencies of kilnd, as opposed to those of a daemon in a test: the compiler, the drivers
// of all devices that it can open, and the system's clock.
#ifndef KILN_SERVER_DAEMON_PARTS_H_
#define KILN_SERVER_DAEMON_PARTS_H_

#include "absl/status/statusor.h"
#include "compiler/workers/kernel_compiler.h"
#include "server/config/config.h"
#include "server/daemon.h"

namespace kiln {

// Null devices, which compute nothing, are only included if config.devices names them. The same is
// true for OpenCL and Level Zero devices that share the host's memory: CPUs and integrated GPUs.
// INVALID_ARGUMENT if it names a null device beyond the maximum. The parts start this executable
// again for work that may crash its process, so main must call IsProbe, IsTrialProcess and
// workers::IsWorker before anything else.
absl::StatusOr<DaemonParts> ProductionParts(const config::Config& config);

// The work of a worker process: compiles a kernel, or has its driver finish one. A vendor's library
// is opened for the first kernel to finish, and stays open. Not thread-safe.
workers::CompileFunction ProductionJobs();

// IsProbe: whether this process was started to open a vendor's library before the daemon does
// (probed_driver.h). RunProbe: returns the exit code for main.
bool IsProbe(int argc, char** argv);
int RunProbe(int argc, char** argv);

// IsTrialProcess: whether this process was started to run candidates of a search
// (tuner/trial_process.h). RunTrials ends the process.
bool IsTrialProcess(int argc, char** argv);
[[noreturn]] void RunTrials(char** argv);

}  // namespace kiln

#endif  // KILN_SERVER_DAEMON_PARTS_H_
