// The gRPC server: addresses, services, health and reflection.
#ifndef KILN_SERVER_RPC_SERVER_H_
#define KILN_SERVER_RPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/relay/tls_context.h"
#include "server/rpc/services/services.h"

namespace kiln::rpc {

class Server {
 public:
  struct Options {
    std::vector<std::string> addresses;  // "unix:PATH" or "host:port"; port 0 picks a free one
    relay::TlsFiles tls;
    bool system_users = false;                     // see Acceptors
    int64_t transport_bytes = int64_t{512} << 20;  // for gRPC's buffers
    // A connection without a call is closed after this time, so that idle ones do not use up
    // descriptors.
    absl::Duration idle_connection = absl::Minutes(2);
    // A connection that leaves a ping unanswered for this long is closed. This detects clients that
    // vanished without closing (a laptop put to sleep); their lease starts to run then.
    absl::Duration ping_answer = absl::Seconds(10);
  };
  // What the server itself and its services use of the daemon. Outlives the server.
  struct Parts {
    DeviceServiceParts devices;
    SessionServiceParts sessions;
    BlobServiceParts blobs;
    ProgramServiceParts programs;
    AdminServiceParts admin;
    TraceServiceParts trace;
  };
  // Requires: `parts` outlives the server. ALREADY_EXISTS or UNAVAILABLE names an address that
  // cannot be used, INVALID_ARGUMENT an address that the daemon must not listen on
  // (CheckListening).
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Parts& parts, const Options& options);
  ~Server();

  // The addresses with the ports that were chosen.
  const std::vector<std::string>& listening() const;
  // grpc.health.v1: "" is the daemon, other names are devices.
  void SetServing(const std::string& name, bool serving);
  // Reads the TLS files again if they were replaced (TlsReloader::Look).
  void ReloadTls();
  // When the certificate in use expires; InfiniteFuture without TLS.
  absl::Time CertificateExpiry() const;
  // Waits for the streams to end, which the caller must have told them to do. Then accepts no more
  // calls, waits for the open ones, and ends the rest. Each of the two waits takes at most
  // `patience`.
  void Stop(absl::Duration patience);

 private:
  struct Implementation;
  explicit Server(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVER_H_
