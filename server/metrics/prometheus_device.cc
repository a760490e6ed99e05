#include "server/metrics/prometheus_device.h"

#include "server/metrics/buckets.h"

namespace kiln::metrics {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;

DeviceFamilies::DeviceFamilies(prometheus::Registry& registry)
    : runs(BuildCounter()
               .Name("kiln_replays_total")
               .Help("Finished runs of programs, by device.")
               .Register(registry)),
      run_failures(BuildCounter()
                       .Name("kiln_replay_failures_total")
                       .Help("Failed runs of programs, by device.")
                       .Register(registry)),
      queue_wait(BuildHistogram()
                     .Name("kiln_queue_wait_seconds")
                     .Help("Time from the arrival of a run until the device got it.")
                     .Register(registry)) {}

PrometheusDevice::PrometheusDevice(DeviceFamilies& families, ProgramTimes& programs,
                                   const std::string& device)
    : programs_(programs),
      runs_(families.runs.Add({{"device", device}})),
      failures_(families.run_failures.Add({{"device", device}})),
      queue_wait_(families.queue_wait.Add({{"device", device}}, Buckets(1e-6, 10))) {}

void PrometheusDevice::RunStarted(absl::Duration waited) {
  queue_wait_.Observe(absl::ToDoubleSeconds(waited));
}
void PrometheusDevice::RunFinished(const RunLabels& run, double seconds,
                                   const std::shared_ptr<const KernelShares>& shares) {
  runs_.Increment();
  programs_.RunFinished(run, seconds, shares);
}
void PrometheusDevice::RunFailed() { failures_.Increment(); }
void PrometheusDevice::KernelRan(const RunLabels& run, absl::string_view kernel, double seconds) {
  programs_.KernelRan(run, kernel, seconds);
}

}  // namespace kiln::metrics
