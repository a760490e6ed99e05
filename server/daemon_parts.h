// What kilnd is made of, in contrast to a daemon in a test: the compiler, the drivers of all
// devices that it can open, the system's clock.
#ifndef KILN_SERVER_DAEMON_PARTS_H_
#define KILN_SERVER_DAEMON_PARTS_H_

#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/daemon.h"

namespace kiln {

// Null devices, which compute nothing, are there only if config.devices names them, and so are
// those of OpenCL's devices that share the host's memory: CPUs and integrated GPUs.
// INVALID_ARGUMENT if it names one beyond the most that there can be.
// The parts start this executable again, for what may end its process: main must ask IsProbe, and
// workers::IsWorker, before anything else.
absl::StatusOr<DaemonParts> ProductionParts(const config::Config& config);

// Whether this process was started to open a vendor's library before the daemon does
// (probed_driver.h), and then what its main returns.
bool IsProbe(int argc, char** argv);
int RunProbe(int argc, char** argv);

}  // namespace kiln

#endif  // KILN_SERVER_DAEMON_PARTS_H_
