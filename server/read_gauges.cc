#include "server/read_gauges.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "proto/text/printable.h"
#include "server/sessions/usage.h"

namespace kiln {
namespace {

std::vector<metrics::UserTotals> UserTotalsOf(const sessions::Registry& registry, absl::Time now) {
  std::map<std::string, metrics::UserTotals> totals;
  for (const auto& user : registry.ListUsers()) {
    metrics::UserTotals& total = totals[user->name];
    total.compile_wait_seconds = static_cast<double>(user->compile_wait_nanoseconds.load()) * 1e-9;
  }
  for (const auto& session : registry.List()) {
    metrics::UserTotals& total = totals[session->user().name];
    // By the wall clock, which may have been set back.
    total.oldest_session = std::max(total.oldest_session, now - session->identity().opened);
    if (session->GetStats().checkpoint_time == absl::InfinitePast()) ++total.unprotected_sessions;
  }
  std::vector<metrics::UserTotals> all;
  for (auto& [user, total] : totals) {
    total.user = user;
    all.push_back(std::move(total));
  }
  return all;
}

std::vector<metrics::ProgramInfo> ProgramInfosOf(const runtime::ProgramCache& programs) {
  constexpr size_t kNameBytesMax = 64;
  std::vector<metrics::ProgramInfo> infos;
  for (const auto& program : programs.List()) {
    infos.push_back({program->short_digest(),
                     Printable(program->description().name.substr(0, kNameBytesMax)),
                     absl::StrJoin(program->device_names(), ",")});
  }
  return infos;
}

// A file system that cannot be read is left out.
void AddDisk(const std::string& what, const std::string& folder, metrics::Gauges* gauges) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return;
  const auto block = static_cast<int64_t>(disk.f_frsize);
  gauges->disks.push_back({what, block * static_cast<int64_t>(disk.f_bavail),
                           block * static_cast<int64_t>(disk.f_blocks)});
}

}  // namespace

metrics::Gauges ReadGauges(const GaugeSources& sources) {
  metrics::Gauges gauges;
  for (runtime::ManagedDevice* device : sources.devices) {
    const sensors::Readings readings = sources.sensors.Of(device->name());
    gauges.devices.push_back(
        {device->name(), device->pool()->used_bytes(), device->pool()->total_bytes(),
         device->device().cached_bytes(), device->dispatcher().queued(),
         device->health() != runtime::Health::kFailed, device->dispatcher().device_seconds(),
         device->pool()->bytes_to_device(), device->pool()->bytes_from_device(),
         device->Utilization(sources.clock.steady()), readings.celsius, readings.watts,
         readings.clock_hertz});
  }
  for (const sessions::Usage& usage : sessions::ListUsage(sources.registry)) {
    gauges.users.push_back({usage.user, usage.device, usage.device_seconds, usage.runs,
                            usage.memory_bytes, usage.sessions, usage.waiting, usage.wait_seconds});
  }
  gauges.user_totals = UserTotalsOf(sources.registry, sources.clock.wall());
  gauges.program_infos = ProgramInfosOf(sources.programs);
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
  if (sources.checkpoints) gauges.saved_session_bytes = sources.checkpoints->bytes();
  AddDisk("state", sources.state_folder, &gauges);
  if (!statistics.path.empty()) AddDisk("cache", statistics.path, &gauges);
  gauges.certificate_expiry = sources.certificate_expiry;
  return gauges;
}

}  // namespace kiln
