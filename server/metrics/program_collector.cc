#include "server/metrics/program_collector.h"

#include <prometheus/metric_family.h>

#include <utility>

namespace kiln::metrics {

using prometheus::MetricFamily;

ProgramTimes& ProgramCollector::ForDevice(const std::string& device) {
  absl::MutexLock lock(&mutex_);
  return devices_.try_emplace(device, device).first->second;
}

std::vector<MetricFamily> ProgramCollector::Collect() const {
  std::vector<MetricFamily> families(2);
  families[0].name = "kiln_program_duration_seconds";
  families[0].help = "Device time of a whole run, by user and program.";
  families[1].name = "kiln_kernel_duration_seconds";
  families[1].help = "Device time of one kernel, from sampled runs.";
  for (MetricFamily& family : families) family.type = prometheus::MetricType::Histogram;
  absl::MutexLock lock(&mutex_);
  for (auto& [device, times] : devices_) times.Scrape(families[0], families[1]);
  return families;
}

}  // namespace kiln::metrics
