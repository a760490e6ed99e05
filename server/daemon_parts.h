// What kilnd is made of, in contrast to a daemon in a test: the compiler, the drivers of all
// devices that it can open, the system's clock.
#ifndef KILN_SERVER_DAEMON_PARTS_H_
#define KILN_SERVER_DAEMON_PARTS_H_

#include "absl/status/statusor.h"
#include "compiler/workers/kernel_compiler.h"
#include "server/config/config.h"
#include "server/daemon.h"

namespace kiln {

// Null devices, which compute nothing, are there only if config.devices names them, and so are
// those of OpenCL's devices that share the host's memory: CPUs and integrated GPUs.
// INVALID_ARGUMENT if it names one beyond the most that there can be.
// The parts start this executable again, for what may end its process: main must ask IsProbe, and
// workers::IsWorker, before anything else.
absl::StatusOr<DaemonParts> ProductionParts(const config::Config& config);

// What a worker process does: compiles a kernel, or has its driver finish one. A vendor's library
// is opened for the first of those, and stays. Not thread-safe.
workers::CompileFunction ProductionJobs();

// Whether this process was started to open a vendor's library before the daemon does
// (probed_driver.h), and then what its main returns.
bool IsProbe(int argc, char** argv);
int RunProbe(int argc, char** argv);

}  // namespace kiln

#endif  // KILN_SERVER_DAEMON_PARTS_H_
