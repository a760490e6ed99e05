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
  using prometheus::MetricType;
  ProgramTimes::Families families{
      {"kiln_program_duration_seconds",
       "Device time of a whole run, by user and program.",
       MetricType::Histogram,
       {}},
      {"kiln_kernel_duration_seconds",
       "Device time of one launch of a kernel, from sampled runs.",
       MetricType::Histogram,
       {}},
      {"kiln_kernel_device_seconds_total",
       "Device time of all runs, divided among kernels in the proportions of sampled runs.",
       MetricType::Counter,
       {}}};
  absl::MutexLock lock(&mutex_);
  for (auto& [device, times] : devices_) times.Scrape(families);
  return {std::move(families.programs), std::move(families.kernels),
          std::move(families.kernel_seconds)};
}

}  // namespace kiln::metrics
