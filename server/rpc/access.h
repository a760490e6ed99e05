// Identifies the caller of an RPC and checks its rights. gRPC asks before any handler; handlers ask
// for the name.
#ifndef KILN_SERVER_RPC_ACCESS_H_
#define KILN_SERVER_RPC_ACCESS_H_

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/server_context.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/auth/audit_log.h"
#include "server/auth/authenticator.h"
#include "server/auth/principal.h"
#include "server/clock/clock.h"
#include "server/log/rate_limit.h"
#include "server/metrics/metrics.h"

namespace kiln::rpc {

// The kinds of listeners, and what is known of a connection before its first call.
enum class Entrance {
  kLoopback,     // open to all as "local" while the daemon has no users; then a token is needed
  kTls,          // a token is needed
  kCertificate,  // TLS has verified a certificate, which names the user
  kPeer,         // a Unix socket: the system reports the user
  // The web view, read-only: open to all as "local", who sees everything as on /metrics, while the
  // daemon has no users; then a token is needed.
  kView,
};

// Thread-safe. A call with a token belongs to the token's user, at every entrance. A call whose
// headers did not end is refused. Refusals are written to the audit log, a limited number of times
// a minute; fewer for unknown callers, who could otherwise push everything else out of the log.
class Access {
 public:
  struct Options {
    auth::Authenticator* users = nullptr;  // all outlive this
    auth::AuditLog* audit = nullptr;
    metrics::Metrics* metrics = nullptr;
    Clock clock;
  };
  // Requires: all of the options are set.
  explicit Access(Options options);

  // Provides the credentials check for one of gRPC's acceptors. Must not outlive this object or the
  // server. With kCertificate and kPeer, every call is refused until SetPeer was called with the
  // number.
  struct Listener {
    int number = 0;
    std::shared_ptr<grpc::AuthMetadataProcessor> processor;
  };
  // `on_accepted` is called, by any thread, when the first call of a connection is accepted; gRPC
  // does not say which connection it is.
  Listener AddListener(
      Entrance entrance, std::function<void()> on_accepted = [] {}) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the user of all connections of a listener, or the error with which they are refused: with
  // kPeer the user of the system, with kCertificate the user that the certificate names. Requires:
  // the listener has one of these entrances, and no connection has been let in yet.
  void SetPeer(int listener, absl::StatusOr<auth::Principal> peer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the caller of a call that has passed the processor. An error if the caller's token was
  // revoked in between.
  absl::StatusOr<auth::Principal> Caller(const grpc::ServerContextBase& context) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The rest is for the processors.

  struct Credentials {
    int listener = 0;
    std::optional<std::string> authorization;  // the metadata's value
  };
  absl::StatusOr<auth::Principal> Identify(const Credentials& credentials) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // OK if the caller may call `method` ("/kiln.v1.AdminService/Drain").
  absl::Status Check(const Credentials& credentials, const std::string& method)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the listener of the connection, once for each connection.
  void Mark(grpc::AuthContext& connection, int listener) ABSL_LOCKS_EXCLUDED(marking_mutex_);
  // Returns false if a call of the connection was accepted before.
  bool MarkAccepted(grpc::AuthContext& connection) ABSL_LOCKS_EXCLUDED(marking_mutex_);

 private:
  struct ListenerState {
    Entrance entrance;
    absl::StatusOr<auth::Principal> peer;
  };
  void AuditRefusal(const std::string& user, const std::string& method, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::deque<ListenerState> listeners_ ABSL_GUARDED_BY(mutex_);
  log::RateLimit refused_users_ ABSL_GUARDED_BY(mutex_){30, absl::Minutes(1)};
  log::RateLimit refused_unknown_ ABSL_GUARDED_BY(mutex_){2, absl::Minutes(1)};
  absl::Mutex marking_mutex_;  // guards the properties of all connections
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_ACCESS_H_
