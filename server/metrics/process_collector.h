// The operating system's figures of this process, under the names of Prometheus's client libraries.
#ifndef KILN_SERVER_METRICS_PROCESS_COLLECTOR_H_
#define KILN_SERVER_METRICS_PROCESS_COLLECTOR_H_

#include <prometheus/collectable.h>

#include <string>
#include <vector>

namespace kiln::metrics {

// Reads proc(5) at every collection. Thread-safe. Values that cannot be read are left out.
class ProcessCollector : public prometheus::Collectable {
 public:
  // `folder` is "/proc" but in tests.
  explicit ProcessCollector(std::string folder = "/proc") : folder_(std::move(folder)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::string folder_;
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_PROCESS_COLLECTOR_H_
