// Ends connections that flood the daemon with what is no message of any call, or with calls that do
// not end (connection_bounds.h). It looks at what the relay and gRPC count, again and again, on a
// thread of its own.
#ifndef KILN_SERVER_RPC_CONNECTION_WATCH_H_
#define KILN_SERVER_RPC_CONNECTION_WATCH_H_

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
#include "server/rpc/connection_bounds.h"

namespace kiln::rpc {

// Thread-safe.
class ConnectionWatch {
 public:
  struct Options {
    ConnectionBounds bounds;
    std::function<absl::Time()> now;  // of the log's limit
    // Closes a connection.
    std::function<void(const relay::Connection&)> abort;
    // A call of the connection was accepted, the first one.
    std::function<void(relay::Connection&, const std::string& user)> set_user;
    // Whose call that is; empty if nobody's.
    std::function<std::string(const grpc::ServerContextBase&)> user_of;
    // Between two looks, which together take at most a twentieth of a processor's time: with very
    // many connections it is longer.
    absl::Duration interval = absl::Milliseconds(20);
  };
  explicit ConnectionWatch(Options options);
  ~ConnectionWatch();

  // Before gRPC gets the connection. The watch forgets it after its end.
  void Add(relay::ConnectionPointer connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // The first call of some connection was accepted. gRPC tells later which it is: where a call is
  // one message, when it is complete.
  void CallAccepted() ABSL_LOCKS_EXCLUDED(mutex_);
  // A call has begun.
  void CallBegun(const grpc::ServerContextBase& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls CallBegun. The watch outlives the server that it is for.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeInterceptorFactory();

 private:
  struct Watched;
  using WatchedPointer = std::shared_ptr<Watched>;  // the thread may still look at one

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void LookAtAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Of those of which no call has begun.
  size_t CountAccepted() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Traffic> TrafficOf(const std::vector<WatchedPointer>& all)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const Watched& watched) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const Watched& watched, absl::string_view why) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  absl::Mutex mutex_;  // held for no look at the system
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, WatchedPointer> connections_ ABSL_GUARDED_BY(mutex_);  // by their names
  // When a call was accepted on each connection of which none has begun.
  std::deque<absl::Time> accepted_ ABSL_GUARDED_BY(mutex_);
  log::RateLimit logged_{30, absl::Minutes(1)};  // of the thread
  std::thread thread_;                           // last: it uses the rest
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTION_WATCH_H_
