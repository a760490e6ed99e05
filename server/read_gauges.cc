#include "server/read_gauges.h"

#include "server/sessions/usage.h"

namespace kiln {

metrics::Gauges ReadGauges(const GaugeSources& sources) {
  metrics::Gauges gauges;
  for (runtime::ManagedDevice* device : sources.devices) {
    gauges.devices.push_back({device->name(), device->pool()->used_bytes(),
                              device->pool()->total_bytes(), device->device().cached_bytes(),
                              device->dispatcher().queued(),
                              device->health() != runtime::Health::kFailed});
  }
  for (const sessions::Usage& usage : sessions::ListUsage(sources.registry)) {
    gauges.users.push_back({usage.user, usage.device, usage.device_seconds, usage.runs,
                            usage.memory_bytes, usage.sessions, usage.waiting});
  }
  for (const auto& session : sources.registry.List()) {
    ++gauges.sessions;
    if (session->GetStats().connected) ++gauges.connections;
  }
  gauges.programs = sources.programs.size();
  gauges.blob_bytes = sources.blobs.bytes();
  for (int i = 0; i < memory::kNumUses; ++i) {
    const auto use = static_cast<memory::Use>(i);
    gauges.host_memory.emplace_back(memory::Name(use), sources.host.used_bytes(use));
  }
  gauges.host_memory_limit_bytes = sources.host.limit_bytes();
  gauges.host_memory_refused = sources.host.refused();
  const cache::KernelCache::Statistics statistics = sources.kernel_cache.GetStatistics();
  gauges.cache_bytes = statistics.bytes;
  gauges.cache_kernels = statistics.kernels;
  gauges.certificate_expiry = sources.certificate_expiry;
  return gauges;
}

}  // namespace kiln
