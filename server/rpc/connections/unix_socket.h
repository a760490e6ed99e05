// Sockets in the file system, each used by one daemon.
#ifndef KILN_SERVER_RPC_CONNECTIONS_UNIX_SOCKET_H_
#define KILN_SERVER_RPC_CONNECTIONS_UNIX_SOCKET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::rpc {

// The exclusive right to listen at a path, held through a lock on `<path>.lock` during this
// object's lifetime. The destructor removes the socket's file.
class SocketClaim {
 public:
  // Creates the folder (with mode 0700 if it is new) and removes a socket left by a killed daemon
  // of this account. ALREADY_EXISTS: another process listens there, whichever account it has.
  // FAILED_PRECONDITION: another account's process has left a socket there; root must remove it,
  // too. INVALID_ARGUMENT: the path is too long for a socket, or something else exists there.
  static absl::StatusOr<std::unique_ptr<SocketClaim>> Take(const std::string& path);
  ~SocketClaim();
  SocketClaim(const SocketClaim&) = delete;
  SocketClaim& operator=(const SocketClaim&) = delete;

 private:
  SocketClaim(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  const std::string path_;
  const int lock_;
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_UNIX_SOCKET_H_
