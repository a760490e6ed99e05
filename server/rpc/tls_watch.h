// Says in the log when files of TLS that were replaced while the daemon runs cannot be used: gRPC,
// which reads them again, turns new connections away until they can, and says nothing.
#ifndef KILN_SERVER_RPC_TLS_WATCH_H_
#define KILN_SERVER_RPC_TLS_WATCH_H_

#include <string>
#include <utility>

#include "server/rpc/credentials.h"

namespace kiln::rpc {

// For one thread.
class TlsWatch {
 public:
  // The files can be used now, or there is no TLS.
  explicit TlsWatch(TlsFiles files) : files_(std::move(files)), state_(State()) {}
  // Logs "tls_files_refused" or "tls_files_replaced" if they are others than at the last look.
  void Look();

 private:
  // Another one after every change of a file.
  std::string State() const;

  const TlsFiles files_;
  std::string state_;
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_TLS_WATCH_H_
