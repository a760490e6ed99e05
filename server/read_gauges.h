// The current state of a daemon, for a scrape.
#ifndef KILN_SERVER_READ_GAUGES_H_
#define KILN_SERVER_READ_GAUGES_H_

#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/rpc/services/services.h"

namespace kiln {

// Thread-safe.
metrics::Gauges ReadGauges(const rpc::DaemonView& daemon, const memory::HostMemory& host);

}  // namespace kiln

#endif  // KILN_SERVER_READ_GAUGES_H_
