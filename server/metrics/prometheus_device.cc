#include "server/metrics/prometheus_device.h"

#include "server/metrics/buckets.h"

namespace kiln::metrics {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Histogram;

DeviceFamilies::DeviceFamilies(prometheus::Registry& registry)
    : runs(BuildCounter()
               .Name("kiln_replays_total")
               .Help("Runs of programs that ended, by device.")
               .Register(registry)),
      run_failures(BuildCounter()
                       .Name("kiln_replay_failures_total")
                       .Help("Runs of programs that failed, by device.")
                       .Register(registry)),
      queue_wait(BuildHistogram()
                     .Name("kiln_queue_wait_seconds")
                     .Help("Time from a run's arrival until the device got it.")
                     .Register(registry)),
      program_seconds(BuildHistogram()
                          .Name("kiln_program_duration_seconds")
                          .Help("Device time of a whole run.")
                          .Register(registry)),
      kernel_seconds(BuildHistogram()
                         .Name("kiln_kernel_duration_seconds")
                         .Help("Device time of one kernel, from sampled runs.")
                         .Register(registry)) {}

PrometheusDevice::PrometheusDevice(DeviceFamilies& families, const std::string& device)
    : families_(families),
      device_(device),
      runs_(families.runs.Add({{"device", device}})),
      failures_(families.run_failures.Add({{"device", device}})),
      queue_wait_(families.queue_wait.Add({{"device", device}}, Buckets(1e-6, 10))),
      seconds_(families.program_seconds.Add({{"device", device}}, Buckets(1e-6, 100))) {}

void PrometheusDevice::RunStarted(absl::Duration waited) {
  queue_wait_.Observe(absl::ToDoubleSeconds(waited));
}
void PrometheusDevice::RunFinished(double seconds) {
  runs_.Increment();
  seconds_.Observe(seconds);
}
void PrometheusDevice::RunFailed() { failures_.Increment(); }
void PrometheusDevice::KernelRan(const std::string& kernel, double seconds) {
  // Without the lock: histograms are thread-safe and stay as long as their family.
  ForKernel(kernel)->Observe(seconds);
}

Histogram* PrometheusDevice::ForKernel(const std::string& kernel) {
  absl::MutexLock lock(&mutex_);
  const bool known = kernels_.count(kernel) > 0;
  const bool full = static_cast<int>(kernels_.size()) >= kMaxKernelNames;
  const std::string name = known || !full ? kernel : "other";
  Histogram*& histogram = kernels_[name];
  if (histogram == nullptr) {
    histogram =
        &families_.kernel_seconds.Add({{"device", device_}, {"kernel", name}}, Buckets(1e-6, 1));
  }
  return histogram;
}

}  // namespace kiln::metrics
