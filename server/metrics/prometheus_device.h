// The metrics of one device, as counters and histograms of Prometheus's library.
#ifndef KILN_SERVER_METRICS_PROMETHEUS_DEVICE_H_
#define KILN_SERVER_METRICS_PROMETHEUS_DEVICE_H_

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/metrics.h"

namespace kiln::metrics {

// What is labelled by device, once for all devices.
struct DeviceFamilies {
  // The registry owns them.
  explicit DeviceFamilies(prometheus::Registry& registry);
  prometheus::Family<prometheus::Counter>& runs;
  prometheus::Family<prometheus::Counter>& run_failures;
  prometheus::Family<prometheus::Histogram>& queue_wait;
  prometheus::Family<prometheus::Histogram>& program_seconds;
  prometheus::Family<prometheus::Histogram>& kernel_seconds;
};

// Thread-safe.
class PrometheusDevice : public DeviceMetrics {
 public:
  // `families` must outlive the device.
  PrometheusDevice(DeviceFamilies& families, const std::string& device);

  void RunStarted(absl::Duration waited) override;
  void RunFinished(double seconds) override;
  void RunFailed() override;
  void KernelRan(const std::string& kernel, double seconds) override;

 private:
  prometheus::Histogram* ForKernel(const std::string& kernel);

  DeviceFamilies& families_;
  const std::string device_;
  prometheus::Counter& runs_;
  prometheus::Counter& failures_;
  prometheus::Histogram& queue_wait_;
  prometheus::Histogram& seconds_;
  absl::Mutex mutex_;
  std::map<std::string, prometheus::Histogram*> kernels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_PROMETHEUS_DEVICE_H_
