#include "server/read_gauges.h"

#include "server/buffers/blob_store.h"
#include "server/cache/kernel_cache.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/sessions/registry.h"
#include "server/sessions/usage.h"

namespace kiln {

metrics::Gauges ReadGauges(const rpc::DaemonView& daemon, const memory::HostMemory& host) {
  metrics::Gauges gauges;
  for (runtime::ManagedDevice* device : daemon.devices) {
    gauges.devices.push_back({device->name(), device->pool()->used_bytes(),
                              device->pool()->total_bytes(), device->device().cached_bytes(),
                              device->dispatcher().queued(),
                              device->health() != runtime::Health::kFailed});
  }
  for (const sessions::Usage& usage : sessions::ListUsage(*daemon.registry)) {
    gauges.users.push_back({usage.user, usage.device, usage.device_seconds, usage.runs,
                            usage.memory_bytes, usage.sessions, usage.waiting});
  }
  for (const auto& session : daemon.registry->List()) {
    ++gauges.sessions;
    if (session->GetSnapshot().connected) ++gauges.connections;
  }
  gauges.programs = daemon.programs->size();
  gauges.blob_bytes = daemon.blobs->bytes();
  for (int i = 0; i < memory::kNumUses; ++i) {
    const auto use = static_cast<memory::Use>(i);
    gauges.host_memory.emplace_back(memory::Name(use), host.used_bytes(use));
  }
  gauges.host_memory_limit_bytes = host.limit_bytes();
  gauges.host_memory_refused = host.refused();
  const cache::KernelCache::Statistics statistics = daemon.kernel_cache->GetStatistics();
  gauges.cache_bytes = statistics.bytes;
  gauges.cache_kernels = statistics.kernels;
  return gauges;
}

}  // namespace kiln
