// The gRPC server: addresses, services, health and reflection.
#ifndef KILN_SERVER_RPC_SERVER_H_
#define KILN_SERVER_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/relay/tls_context.h"
#include "server/rpc/services.h"

namespace kiln::rpc {

class Server {
 public:
  struct Options {
    std::vector<std::string> addresses;  // "unix:PATH" or "host:port"; port 0 picks a free one
    relay::TlsFiles tls;
    bool system_users = false;  // see Acceptors
    // A connection without a call for so long is closed, so that idle ones use up no descriptors.
    absl::Duration idle_connection = absl::Minutes(2);
    // A connection that leaves a ping unanswered for so long is closed. A client that vanished
    // without a word (a laptop put to sleep) is noticed so, and its lease starts to run.
    absl::Duration ping_answer = absl::Seconds(10);
  };
  // `daemon` outlives the server. ALREADY_EXISTS or UNAVAILABLE name an address that cannot be had;
  // INVALID_ARGUMENT one that the daemon must not listen on (CheckListening).
  static absl::StatusOr<std::unique_ptr<Server>> Start(const DaemonView& daemon,
                                                       const Options& options);
  ~Server();

  // The addresses with the ports that were picked.
  const std::vector<std::string>& listening() const;
  // grpc.health.v1: "" is the daemon, other names are devices.
  void SetServing(const std::string& name, bool serving);
  // Reads the files of TLS again if they were replaced (TlsReloader::Look).
  void ReloadTls();
  // Lets the streams end, which somebody has told them to; then takes no more calls, lets those end
  // that there are, and ends the rest. Each of the two waits takes no longer than `patience`.
  void Stop(absl::Duration patience);

 private:
  struct Implementation;
  explicit Server(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVER_H_
