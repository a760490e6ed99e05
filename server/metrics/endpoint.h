// The HTTP server that Prometheus scrapes.
#ifndef KILN_SERVER_METRICS_ENDPOINT_H_
#define KILN_SERVER_METRICS_ENDPOINT_H_

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kiln::metrics {

// Not thread-safe; it serves on threads of its own, which call the collectables.
class Endpoint {
 public:
  ~Endpoint() { Stop(); }

  // Listens on "host:port"; port 0 picks a free one. Returns the port. UNAVAILABLE if it cannot be
  // bound. Closes connections whose requests are not there after `request_patience`. Once, and
  // before the others.
  absl::StatusOr<int> Listen(const std::string& address, absl::Duration request_patience);
  // What is collected is served at /metrics from now on.
  void Serve(const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables);
  // From now on a scrape takes a password for which `allow` is true, of any name (RFC 7617). It is
  // called on the threads that serve, and outlives them. Later calls change nothing.
  void Protect(const std::function<bool(const std::string&)>& allow);
  // No scrape is answered afterwards. May be called at any time.
  void Stop();

 private:
  std::unique_ptr<prometheus::Exposer> exposer_;
  bool is_protected_ = false;
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_ENDPOINT_H_
