// Sockets in the file system: one daemon each.
#ifndef KILN_SERVER_RPC_UNIX_SOCKET_H_
#define KILN_SERVER_RPC_UNIX_SOCKET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::rpc {

// The right to listen at a path, held through a lock on `<path>.lock` for as long as this object
// lives. The socket's file is removed at the end.
class SocketClaim {
 public:
  // Makes the folder (0700 if it is new) and removes a socket that a killed daemon has left.
  // ALREADY_EXISTS: another kilnd listens there. INVALID_ARGUMENT: the path is too long for a
  // socket, or something else stands there.
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

#endif  // KILN_SERVER_RPC_UNIX_SOCKET_H_
