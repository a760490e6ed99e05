// Closes connections that flood the daemon with bytes that form no message of a call, or with calls
// that do not end (bounds.h). Periodically checks the counters of the relay and gRPC, on
// its own thread.
#ifndef KILN_SERVER_RPC_CONNECTIONS_WATCH_H_
#define KILN_SERVER_RPC_CONNECTIONS_WATCH_H_

#include <grpcpp/support/server_interceptor.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/log/rate_limit.h"
#include "server/relay/connection.h"
#include "server/rpc/connections/bounds.h"

namespace kiln::rpc {

// Thread-safe.
class ConnectionWatch {
 public:
  struct Options {
    ConnectionBounds bounds;
    std::function<absl::Time()> now;  // for the log's rate limit
    // Closes a connection.
    std::function<void(const relay::Connection&)> abort;
    // Called at the first accepted call of the connection.
    std::function<void(relay::Connection&, const std::string& user)> set_user;
    // Returns the user of a call; empty if there is none.
    std::function<std::string(const grpc::ServerContextBase&)> user_of;
    // The time between two checks. Checks take at most a twentieth of a processor's time, so with
    // very many connections the time is longer.
    absl::Duration interval = absl::Milliseconds(20);
  };
  // Requires: all functions of the options are set.
  explicit ConnectionWatch(Options options);
  ~ConnectionWatch();

  // Call this before gRPC gets the connection. The watch removes it after its end. Requires: its
  // name is different from those of all earlier connections.
  void Add(relay::ConnectionPointer connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // The first call of some connection was accepted. gRPC reports only later which connection it is:
  // for a call of one message, when that is complete.
  void CallAccepted() ABSL_LOCKS_EXCLUDED(mutex_);
  // A call has begun.
  void CallBegun(const grpc::ServerContextBase& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes interceptors that call CallBegun. The watch must outlive the server that uses them.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeInterceptorFactory();

 private:
  struct Watched;
  using WatchedPointer = std::shared_ptr<Watched>;  // the thread may still use one

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Each connection is under its own name, and there are not too many accepted calls.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void LookAtAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts those on whose connections no call has begun.
  size_t CountAccepted() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Traffic> TrafficOf(const std::vector<WatchedPointer>& all)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const Watched& watched) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const Watched& watched, absl::string_view why) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;  // not held during system calls
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, WatchedPointer> connections_ ABSL_GUARDED_BY(mutex_);  // by their names
  // The times of accepted calls on connections where no call has begun.
  std::deque<absl::Time> accepted_ ABSL_GUARDED_BY(mutex_);
  log::RateLimit logged_{30, absl::Minutes(1)};  // used by the thread
  std::thread thread_;                           // last: it uses the other members
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_WATCH_H_
