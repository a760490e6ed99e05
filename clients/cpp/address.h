// Where a daemon is found when nobody says.
#ifndef KILN_CLIENTS_CPP_ADDRESS_H_
#define KILN_CLIENTS_CPP_ADDRESS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::client {

// What the rule looks at, handed in so that tests need no environment.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::function<bool(const std::string& path)> exists;
  unsigned user_id = 0;
  // A file's text. NOT_FOUND: there is no such file; INVALID_ARGUMENT: it cannot be read, is no
  // regular file (a device has no end), or has more than `bytes_max`. The
  // messages name the file and the reason.
  std::function<absl::StatusOr<std::string>(const std::string& path, size_t bytes_max)> read;
};
Surroundings ProcessSurroundings();

// The daemon's address in gRPC's form ("unix:/path" or "host:port"): `given` if it is not empty,
// else $KILN_ADDRESS, else the socket in $XDG_RUNTIME_DIR/kiln/kilnd.sock or
// /tmp/kiln-$UID/kilnd.sock if there is one, else 127.0.0.1:7433. A path ("/run/kilnd.sock") is
// taken as a socket, and a host without a port gets 7433.
std::string FindAddress(const std::string& given, const Surroundings& surroundings);

// INVALID_ARGUMENT, naming the address: it is a URL such as http://box:7433, or its port is none
// from 1 to 65535 (gRPC would take 99999 as 34463).
absl::Status CheckAddress(const std::string& address);

// Whether both spell one address: its port may be missing, and localhost is 127.0.0.1.
bool IsSameAddress(const std::string& one, const std::string& other);

// Whether what is sent to an address in gRPC's form stays on this machine.
bool IsLocal(const std::string& address);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_ADDRESS_H_
