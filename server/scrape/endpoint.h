// The HTTP server that Prometheus scrapes, and that has the web view.
#ifndef KILN_SERVER_SCRAPE_ENDPOINT_H_
#define KILN_SERVER_SCRAPE_ENDPOINT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/relay/tls_context.h"
#include "server/rpc/connections/tcp_socket.h"
#include "server/scrape/connection.h"
#include "server/scrape/http.h"
#include "server/scrape/reply.h"

namespace kiln::scrape {

// Answers a request for a page of its own. Returns false, without an answer, if it has no such
// page. Called on the serving thread; answers on any thread.
using Pages = std::function<bool(const Request& request, const Reply& reply)>;

// Whether a client with this password, or without one, may scrape.
using Allow = std::function<bool(const std::optional<std::string>& password)>;

// Serves GET /metrics, and for supervisors such as Kubernetes /healthz (the process answers) and
// /readyz (it takes new work; 503 if not), which need no password, and further pages, which may
// answer later. Its own thread never blocks on a client: each client has a limited time to send its
// request, and from then on to get the response and read it. If one
// origin has too many connections, or there are too many in total, the oldest one without a request
// is closed, so that slow clients do not block others. Thread-safe.
class Endpoint {
 public:
  static constexpr size_t kOfOriginMax = 64;
  static constexpr size_t kConnectionsMax = 256;

  struct Options {
    std::string address;                // "host:port"; port 0 chooses a free one
    std::function<std::string()> text;  // the response; called on the serving thread
    Allow allow;                        // called on the serving thread
    // Whether everybody on the machine may scrape; called on the serving thread.
    std::function<bool()> is_open;
    // Returns "" if the daemon takes new work, else the reason; called on the serving thread.
    std::function<std::string()> why_not_ready;
    Pages pages{};                             // empty: there are none
    std::function<relay::TlsContext()> tls{};  // empty: plain HTTP
    std::function<absl::Time()> steady_now;
    absl::Duration request_patience = absl::Seconds(2);
    absl::Duration answer_patience = absl::Seconds(30);
  };
  // UNAVAILABLE if it cannot listen.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Start(Options options);
  ~Endpoint();

  int port() const { return socket_->port(); }

 private:
  struct Arrived {
    int file;
    std::string origin;
  };

  explicit Endpoint(Options options);
  void Take(int file, std::string origin) ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve();
  // Returns false if it has been stopped.
  bool Wait(std::vector<short>* ready) ABSL_LOCKS_EXCLUDED(mutex_);
  void Admit(Arrived arrived);
  // Drops a matching connection: the oldest without a request, or else the oldest.
  void DropOne(const std::function<bool(const Connection&)>& matches);
  void Respond(const Request& request, const Reply& reply) const;
  Response RespondToSupervisor(const Request& request) const;
  // Returns false if the connection is over.
  bool Advance(Connection& connection, bool was_ready) const;

  // An eventfd that ends the thread's poll.
  class Wake {
   public:
    Wake();
    ~Wake();
    int file() const { return file_; }
    void Ring() const;

   private:
    const int file_;
  };

  const Options options_;
  const std::shared_ptr<const Wake> wake_;                // shared with responses that come later
  std::vector<std::unique_ptr<Connection>> connections_;  // used by the thread; oldest first
  absl::Mutex mutex_;
  std::vector<Arrived> arrived_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<rpc::TcpSocket> socket_;
  std::thread thread_;
};

}  // namespace kiln::scrape

#endif  // KILN_SERVER_SCRAPE_ENDPOINT_H_
