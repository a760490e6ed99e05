// The current state of a daemon, for a scrape.
#ifndef KILN_SERVER_READ_GAUGES_H_
#define KILN_SERVER_READ_GAUGES_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/buffers/blob_store.h"
#include "server/cache/kernel_cache.h"
#include "server/clock/clock.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/sensors/device_sensors.h"
#include "server/sessions/checkpoint/store.h"
#include "server/sessions/registry.h"

namespace kiln {

struct GaugeSources {
  const std::vector<runtime::ManagedDevice*>& devices;
  const sensors::DeviceSensors& sensors;
  const sessions::Registry& registry;
  const runtime::ProgramCache& programs;
  const buffers::BlobStore& blobs;
  const memory::HostMemory& host;
  cache::KernelCache& kernel_cache;
  const sessions::CheckpointStore* checkpoints;  // null: sessions are not kept
  const std::string& state_folder;
  const Clock& clock;
  absl::Time certificate_expiry;
};
// Thread-safe.
metrics::Gauges ReadGauges(const GaugeSources& sources);

}  // namespace kiln

#endif  // KILN_SERVER_READ_GAUGES_H_
