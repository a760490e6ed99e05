// The drivers and the compiler of a real daemon.
#ifndef KILN_SERVER_DAEMON_PARTS_H_
#define KILN_SERVER_DAEMON_PARTS_H_

#include "server/config/config.h"
#include "server/daemon.h"

namespace kiln {

DaemonParts RealParts(const config::Config& config);

}  // namespace kiln

#endif  // KILN_SERVER_DAEMON_PARTS_H_
