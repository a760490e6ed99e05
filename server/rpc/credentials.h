// What a port demands of those who connect, and where the daemon may listen.
#ifndef KILN_SERVER_RPC_CREDENTIALS_H_
#define KILN_SERVER_RPC_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/rpc/access.h"

namespace kiln::rpc {

// PEM files, read again every second, so that they can be replaced while the daemon runs. Without a
// certificate there is no TLS.
struct TlsFiles {
  std::string certificate;  // with those that lead to its authority
  std::string key;
  std::string client_ca;  // whose certificates are users', by their common names; empty: none are

  bool empty() const { return certificate.empty(); }
};

// INVALID_ARGUMENT: one of them cannot be used, or the key is another certificate's.
absl::Status CheckFiles(const TlsFiles& tls);

// "127.0.0.1:7433", "[::1]:0", "localhost:7433".
bool IsLoopback(const std::string& address);

// OK if the daemon may listen on all of `addresses`: beyond loopback it demands TLS, and a way to
// tell who calls. INVALID_ARGUMENT, also for files of TLS that cannot be used, names the remedy.
absl::Status CheckListening(const std::vector<std::string>& addresses, const TlsFiles& tls,
                            bool nobody_known);

// `is_open`: whoever connects may read them. INVALID_ARGUMENT if that could be from another
// machine.
absl::Status CheckMetricsListening(const std::string& address, bool is_open);

// Of a port, which is everything but a Unix socket. With TLS, loopback's too. `on_accepted`: see
// Access::MakeDoor.
std::shared_ptr<grpc::ServerCredentials> PortCredentials(
    const TlsFiles& tls, Access& access, std::function<void()> on_accepted = [] {});

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CREDENTIALS_H_
