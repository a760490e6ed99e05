// The HTTP server that Prometheus scrapes.
#ifndef KILN_SERVER_METRICS_ENDPOINT_H_
#define KILN_SERVER_METRICS_ENDPOINT_H_

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln::metrics {

// Not thread-safe; it serves on threads of its own, which call the collectables.
class Endpoint {
 public:
  ~Endpoint() { Stop(); }

  // Serves what is collected at /metrics on "host:port"; port 0 picks a free one. Returns the port.
  // UNAVAILABLE if it cannot be bound.
  absl::StatusOr<int> Listen(
      const std::string& address,
      const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables);
  // No scrape is answered afterwards. May be called at any time.
  void Stop();

 private:
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_ENDPOINT_H_
