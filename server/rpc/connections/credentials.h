// Checks of the addresses that the daemon listens on.
#ifndef KILN_SERVER_RPC_CONNECTIONS_CREDENTIALS_H_
#define KILN_SERVER_RPC_CONNECTIONS_CREDENTIALS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/relay/tls_context.h"

namespace kiln::rpc {

// "127.0.0.1:7433", "[::1]:0", "localhost:7433".
bool IsLoopback(const std::string& address);

// OK if the daemon may listen on all of `addresses`: beyond loopback it requires TLS and a way to
// authenticate callers. INVALID_ARGUMENT, also for unusable TLS files, names the remedy.
absl::Status CheckListening(const std::vector<std::string>& addresses, const relay::TlsFiles& tls,
                            bool nobody_known);

struct MetricsAccess {
  bool is_open = false;   // to every client that connects
  bool is_plain = false;  // over HTTP, although there is TLS
};
// INVALID_ARGUMENT if such access would be possible from another machine.
absl::Status CheckMetricsListening(const std::string& address, MetricsAccess access);

// PERMISSION_DENIED if a request with this field Host must not be answered although everybody on
// the machine may ask (`is_open`): a page of another site may have made a name of its own lead to
// 127.0.0.1 (DNS rebinding), and would read the answer with the user's browser.
absl::Status CheckHost(const std::string& host, bool is_open);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_CREDENTIALS_H_
