#include "server/metrics/gauge_collector.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace kiln::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily GaugeFamily(std::string name, std::string help) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = MetricType::Gauge;
  return family;
}

// Counted elsewhere, so it is read like a gauge; its type tells Prometheus that it only increases.
MetricFamily CounterFamily(std::string name, std::string help) {
  MetricFamily family = GaugeFamily(std::move(name), std::move(help));
  family.type = MetricType::Counter;
  return family;
}

void AddSample(MetricFamily& family, const std::string& label_value, double value,
               const char* label = "device") {
  prometheus::ClientMetric metric;
  if (!label_value.empty()) metric.label.push_back({label, label_value});
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

using Labels = std::vector<prometheus::ClientMetric::Label>;

void AddCount(MetricFamily& family, Labels labels, double value) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.counter.value = value;
}

std::vector<MetricFamily> PerDevice(const Gauges& now) {
  // The samples below refer to these by index.
  std::vector<MetricFamily> families = {
      GaugeFamily("kiln_device_memory_used_bytes", "Device memory in use."),
      GaugeFamily("kiln_device_memory_limit_bytes", "Limit of device memory in use."),
      GaugeFamily("kiln_device_memory_cached_bytes", "Freed device memory kept for reuse."),
      GaugeFamily("kiln_device_queue_length", "Runs waiting for the device."),
      GaugeFamily("kiln_device_healthy", "1 if the device can be used, else 0."),
      CounterFamily("kiln_device_busy_seconds_total", "Time in which the device ran programs."),
      GaugeFamily("kiln_device_utilization_ratio", "Share of recent time in which programs ran."),
      CounterFamily("kiln_device_copied_bytes_total",
                    "Bytes copied between the host and the device, by direction."),
      GaugeFamily("kiln_device_temperature_celsius", "Temperature of the device."),
      GaugeFamily("kiln_device_power_watts", "Power that the device draws."),
      GaugeFamily("kiln_device_clock_hertz", "Clock of the device's compute units.")};
  for (const DeviceGauges& device : now.devices) {
    AddSample(families[0], device.device, static_cast<double>(device.memory_used_bytes));
    AddSample(families[1], device.device, static_cast<double>(device.memory_total_bytes));
    AddSample(families[2], device.device, static_cast<double>(device.memory_cached_bytes));
    AddSample(families[3], device.device, static_cast<double>(device.queued));
    AddSample(families[4], device.device, device.healthy ? 1 : 0);
    AddCount(families[5], {{"device", device.device}}, device.busy_seconds);
    AddSample(families[6], device.device, device.utilization);
    AddCount(families[7], {{"device", device.device}, {"direction", "to_device"}},
             static_cast<double>(device.to_device_bytes));
    AddCount(families[7], {{"device", device.device}, {"direction", "from_device"}},
             static_cast<double>(device.from_device_bytes));
    if (device.celsius) AddSample(families[8], device.device, *device.celsius);
    if (device.watts) AddSample(families[9], device.device, *device.watts);
    if (device.clock_hertz) AddSample(families[10], device.device, *device.clock_hertz);
  }
  return families;
}

// Sums the values of users that share a name, ordered by name and device.
std::vector<UserGauges> ByName(const std::vector<UserGauges>& users, BoundedNames& names) {
  std::map<std::pair<std::string, std::string>, UserGauges> sums;
  for (const UserGauges& user : users) {
    const std::string name = names.Name(user.user);
    UserGauges& sum = sums[{name, user.device}];
    sum.user = name;
    sum.device = user.device;
    sum.device_seconds += user.device_seconds;
    sum.runs += user.runs;
    sum.memory_bytes += user.memory_bytes;
    sum.sessions += user.sessions;
    sum.waiting += user.waiting;
    sum.queue_wait_seconds += user.queue_wait_seconds;
  }
  std::vector<UserGauges> all;
  for (auto& [key, sum] : sums) all.push_back(std::move(sum));
  return all;
}

std::vector<MetricFamily> PerUser(const std::vector<UserGauges>& users) {
  // The samples below refer to these by index.
  std::vector<MetricFamily> families = {
      CounterFamily("kiln_user_device_seconds_total", "Device time of the runs of a user."),
      CounterFamily("kiln_user_runs_total", "Finished runs of a user."),
      GaugeFamily("kiln_user_memory_bytes", "Device memory held by the sessions of a user."),
      GaugeFamily("kiln_user_sessions", "Open sessions of a user."),
      GaugeFamily("kiln_user_waiting_operations", "Unfinished operations of a user."),
      CounterFamily("kiln_user_queue_wait_seconds_total",
                    "Time that the runs of a user have waited until the device got them.")};
  for (const UserGauges& user : users) {
    const double values[] = {user.device_seconds,
                             static_cast<double>(user.runs),
                             static_cast<double>(user.memory_bytes),
                             static_cast<double>(user.sessions),
                             static_cast<double>(user.waiting),
                             user.queue_wait_seconds};
    for (size_t i = 0; i < families.size(); ++i) {
      prometheus::ClientMetric& metric = families[i].metric.emplace_back();
      metric.label = {{"user", user.user}, {"device", user.device}};
      const bool counter = families[i].type == MetricType::Counter;
      (counter ? metric.counter.value : metric.gauge.value) = values[i];
    }
  }
  return families;
}

std::vector<MetricFamily> TotalsPerUser(const std::vector<UserTotals>& users, BoundedNames& names) {
  std::map<std::string, UserTotals> sums;
  for (const UserTotals& user : users) {
    UserTotals& sum = sums[names.Name(user.user)];
    sum.compile_wait_seconds += user.compile_wait_seconds;
    sum.oldest_session = std::max(sum.oldest_session, user.oldest_session);
    sum.unprotected_sessions += user.unprotected_sessions;
  }
  std::vector<MetricFamily> families = {
      CounterFamily("kiln_user_compile_wait_seconds_total",
                    "Time for which operations of a user waited for programs to be compiled."),
      GaugeFamily("kiln_user_oldest_session_seconds", "Age of the oldest open session of a user."),
      GaugeFamily("kiln_user_unprotected_sessions",
                  "Open sessions of a user that would be lost if the daemon were killed.")};
  for (const auto& [name, sum] : sums) {
    AddCount(families[0], {{"user", name}}, sum.compile_wait_seconds);
    AddSample(families[1], name, absl::ToDoubleSeconds(sum.oldest_session), "user");
    AddSample(families[2], name, static_cast<double>(sum.unprotected_sessions), "user");
  }
  return families;
}

MetricFamily ProgramInfos(const std::vector<ProgramInfo>& programs) {
  MetricFamily family =
      GaugeFamily("kiln_program_info", "1, with the name and the devices of a program in memory.");
  // A digest may have several programs, but is shown once, so that the others' series join it.
  std::set<std::string> shown;
  for (const ProgramInfo& program : programs) {
    if (shown.size() >= kProgramNamesMax) break;
    if (!shown.insert(program.program).second) continue;
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    metric.label = {
        {"program", program.program}, {"name", program.name}, {"devices", program.devices}};
    metric.gauge.value = 1;
  }
  return family;
}

std::vector<MetricFamily> PerDisk(const std::vector<DiskGauges>& disks) {
  std::vector<MetricFamily> families = {
      GaugeFamily("kiln_disk_free_bytes", "Free space of the file system that has the folder."),
      GaugeFamily("kiln_disk_size_bytes", "Size of the file system that has the folder.")};
  for (const DiskGauges& disk : disks) {
    AddSample(families[0], disk.folder, static_cast<double>(disk.free_bytes), "folder");
    AddSample(families[1], disk.folder, static_cast<double>(disk.size_bytes), "folder");
  }
  return families;
}

MetricFamily HostMemoryByUse(const Gauges& now) {
  MetricFamily family =
      GaugeFamily("kiln_host_memory_bytes", "Host memory held for clients, by use.");
  for (const auto& [use, bytes] : now.host_memory)
    AddSample(family, use, static_cast<double>(bytes), "use");
  return family;
}

MetricFamily HostMemoryRefused(const Gauges& now) {
  MetricFamily family = CounterFamily("kiln_host_memory_refused_total",
                                      "Requests refused because host memory was full.");
  family.metric.emplace_back().counter.value = static_cast<double>(now.host_memory_refused);
  return family;
}

}  // namespace

void GaugeCollector::Set(std::function<Gauges()> read) {
  absl::MutexLock lock(&mutex_);
  read_ = std::move(read);
}

std::vector<MetricFamily> GaugeCollector::Collect() const {
  absl::MutexLock lock(&mutex_);
  if (!read_) return {};
  // One reading for all families, so that the values of a scrape are consistent.
  const Gauges now = read_();
  std::vector<MetricFamily> families = PerDevice(now);
  for (MetricFamily& family : PerUser(ByName(now.users, user_names_)))
    families.push_back(std::move(family));
  for (MetricFamily& family : TotalsPerUser(now.user_totals, user_names_))
    families.push_back(std::move(family));
  families.push_back(ProgramInfos(now.program_infos));
  for (MetricFamily& family : PerDisk(now.disks)) families.push_back(std::move(family));
  families.push_back(HostMemoryByUse(now));
  families.push_back(HostMemoryRefused(now));
  if (now.certificate_expiry != absl::InfiniteFuture()) {
    families.push_back(GaugeFamily("kiln_tls_certificate_expiry_timestamp_seconds",
                                   "When the TLS certificate expires, as a Unix time."));
    AddSample(families.back(), "",
              absl::ToDoubleSeconds(now.certificate_expiry - absl::UnixEpoch()));
  }
  const std::pair<MetricFamily, int64_t> totals[] = {
      {GaugeFamily("kiln_host_memory_limit_bytes", "Limit of host memory held for clients."),
       now.host_memory_limit_bytes},
      {GaugeFamily("kiln_sessions", "Open sessions."), now.sessions},
      {GaugeFamily("kiln_connections", "Connect streams attached to sessions."), now.connections},
      {GaugeFamily("kiln_programs", "Compiled programs in memory."), now.programs},
      {GaugeFamily("kiln_blob_bytes", "Host memory held by uploaded blobs."), now.blob_bytes},
      {GaugeFamily("kiln_saved_session_bytes", "Size of the files of sessions on disk."),
       now.saved_session_bytes},
      {GaugeFamily("kiln_kernel_cache_bytes", "Size of the kernel cache on disk."),
       now.cache_bytes},
      {GaugeFamily("kiln_kernel_cache_kernels", "Kernels in the cache on disk."),
       now.cache_kernels}};
  for (const auto& [family, value] : totals) {
    families.push_back(family);
    AddSample(families.back(), "", static_cast<double>(value));
  }
  return families;
}

}  // namespace kiln::metrics
