#include "server/metrics/gauge_collector.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <utility>

namespace kiln::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Gauge(std::string name, std::string help) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = MetricType::Gauge;
  return family;
}

void AddSample(MetricFamily& family, const std::string& label_value, double value,
               const char* label = "device") {
  prometheus::ClientMetric metric;
  if (!label_value.empty()) metric.label.push_back({label, label_value});
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

std::vector<MetricFamily> PerDevice(const Gauges& now) {
  // The samples below name these by their place.
  std::vector<MetricFamily> families = {
      Gauge("kiln_device_memory_used_bytes", "Device memory that is handed out."),
      Gauge("kiln_device_memory_limit_bytes", "Device memory that may be handed out."),
      Gauge("kiln_device_memory_cached_bytes", "Freed device memory that is kept for reuse."),
      Gauge("kiln_device_queue_length", "Runs that wait for the device."),
      Gauge("kiln_device_healthy", "1 if the device can be used, else 0.")};
  for (const DeviceGauges& device : now.devices) {
    AddSample(families[0], device.device, static_cast<double>(device.memory_used_bytes));
    AddSample(families[1], device.device, static_cast<double>(device.memory_total_bytes));
    AddSample(families[2], device.device, static_cast<double>(device.memory_cached_bytes));
    AddSample(families[3], device.device, static_cast<double>(device.queued));
    AddSample(families[4], device.device, device.healthy ? 1 : 0);
  }
  return families;
}

MetricFamily HostMemoryByUse(const Gauges& now) {
  MetricFamily family =
      Gauge("kiln_host_memory_bytes", "Memory that clients make the daemon hold, by use.");
  for (const auto& [use, bytes] : now.host_memory)
    AddSample(family, use, static_cast<double>(bytes), "use");
  return family;
}

// Somebody else counts these, so they are read like a gauge; Prometheus must know that they only
// grow.
MetricFamily HostMemoryRefused(const Gauges& now) {
  MetricFamily family;
  family.name = "kiln_host_memory_refused_total";
  family.help = "What was refused because host memory had no room.";
  family.type = MetricType::Counter;
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
  // One reading for all families, so that what a scrape shows belongs together.
  const Gauges now = read_();
  std::vector<MetricFamily> families = PerDevice(now);
  families.push_back(HostMemoryByUse(now));
  families.push_back(HostMemoryRefused(now));
  const std::pair<MetricFamily, int64_t> totals[] = {
      {Gauge("kiln_host_memory_limit_bytes", "The most that they may."),
       now.host_memory_limit_bytes},
      {Gauge("kiln_sessions", "Open sessions."), now.sessions},
      {Gauge("kiln_connections", "Connect streams attached to sessions."), now.connections},
      {Gauge("kiln_programs", "Compiled programs in memory."), now.programs},
      {Gauge("kiln_blob_bytes", "Host memory held by uploaded blobs."), now.blob_bytes},
      {Gauge("kiln_kernel_cache_bytes", "Size of the kernel cache on disk."), now.cache_bytes},
      {Gauge("kiln_kernel_cache_kernels", "Kernels in the cache on disk."), now.cache_kernels}};
  for (const auto& [family, value] : totals) {
    families.push_back(family);
    AddSample(families.back(), "", static_cast<double>(value));
  }
  return families;
}

}  // namespace kiln::metrics
