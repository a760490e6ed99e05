// The current values, as Prometheus collects them.
#ifndef KILN_SERVER_METRICS_GAUGE_COLLECTOR_H_
#define KILN_SERVER_METRICS_GAUGE_COLLECTOR_H_

#include <prometheus/collectable.h>

#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/bounded_names.h"
#include "server/metrics/metrics.h"

namespace kiln::metrics {

// Thread-safe. Collects nothing until Set.
class GaugeCollector : public prometheus::Collectable {
 public:
  // `read` is called at every collection, under this object's lock.
  void Set(std::function<Gauges()> read);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable absl::Mutex mutex_;
  mutable BoundedNames user_names_ ABSL_GUARDED_BY(mutex_){kUserNamesMax};
  std::function<Gauges()> read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_GAUGE_COLLECTOR_H_
