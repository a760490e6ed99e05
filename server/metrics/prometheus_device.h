// The metrics of one device, as counters and histograms of Prometheus's library.
#ifndef KILN_SERVER_METRICS_PROMETHEUS_DEVICE_H_
#define KILN_SERVER_METRICS_PROMETHEUS_DEVICE_H_

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "server/metrics/metrics.h"
#include "server/metrics/program_times.h"

namespace kiln::metrics {

// Metrics labelled by device, one object for all devices.
struct DeviceFamilies {
  // Owned by the registry.
  explicit DeviceFamilies(prometheus::Registry& registry);
  prometheus::Family<prometheus::Counter>& runs;
  prometheus::Family<prometheus::Counter>& run_failures;
  prometheus::Family<prometheus::Histogram>& queue_wait;
};

// Thread-safe.
class PrometheusDevice : public DeviceMetrics {
 public:
  // Requires: both outlive this object.
  PrometheusDevice(DeviceFamilies& families, ProgramTimes& programs, const std::string& device);

  void RunStarted(absl::Duration waited) override;
  void RunFinished(const RunLabels& run, double seconds,
                   const std::shared_ptr<const KernelShares>& shares) override;
  void RunFailed() override;
  void KernelRan(const RunLabels& run, absl::string_view kernel, double seconds) override;

 private:
  ProgramTimes& programs_;
  prometheus::Counter& runs_;
  prometheus::Counter& failures_;
  prometheus::Histogram& queue_wait_;
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_PROMETHEUS_DEVICE_H_
