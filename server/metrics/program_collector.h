// The times of users' programs on all devices, as Prometheus collects them.
#ifndef KILN_SERVER_METRICS_PROGRAM_COLLECTOR_H_
#define KILN_SERVER_METRICS_PROGRAM_COLLECTOR_H_

#include <prometheus/collectable.h>

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/program_times.h"

namespace kiln::metrics {

// Thread-safe.
class ProgramCollector : public prometheus::Collectable {
 public:
  // The result lives as long as this object.
  ProgramTimes& ForDevice(const std::string& device) ABSL_LOCKS_EXCLUDED(mutex_);
  // Every call counts as a scrape.
  std::vector<prometheus::MetricFamily> Collect() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  mutable std::map<std::string, ProgramTimes> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_PROGRAM_COLLECTOR_H_
