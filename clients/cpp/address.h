// Finds the daemon's address.
#ifndef KILN_CLIENTS_CPP_ADDRESS_H_
#define KILN_CLIENTS_CPP_ADDRESS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::client {

// The environment that the rule depends on. Injected, so that tests do not depend on the machine's.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::function<bool(const std::string& path)> answers;  // whether a process listens at the socket
  unsigned user_id = 0;
  // Returns why another account may have created a socket; empty if none may (socket_trust.h). No
  // function: all are trusted.
  std::function<std::string(const std::string& path)> why_distrusted{};
  // Returns a file's text. NOT_FOUND: the file does not exist; INVALID_ARGUMENT: it cannot be read,
  // is not a regular file (a device has no end), or is larger than `bytes_max`. The messages name
  // the file and the reason.
  std::function<absl::StatusOr<std::string>(const std::string& path, size_t bytes_max)> read;
};
Surroundings ProcessSurroundings();

// Returns the daemon's address in gRPC's form ("unix:/path" or "host:port"): `given` if it is not
// empty, else $KILN_ADDRESS, else the first of the sockets $XDG_RUNTIME_DIR/kiln/kilnd.sock,
// /tmp/kiln-$UID/kilnd.sock and /run/kiln/kilnd.sock (the system's daemon) at which a process
// listens and that no other account may have created, else 127.0.0.1:7433. A path
// ("/run/kilnd.sock") is taken as a socket, and a host without a port gets port 7433. `skipped`, if
// not null, gets a sentence about sockets that another account may have created.
std::string FindAddress(const std::string& given, const Surroundings& surroundings,
                        std::string* skipped = nullptr);

// Returns INVALID_ARGUMENT, naming the address, if it is a URL such as http://box:7433, or if its
// port is not from 1 to 65535 (gRPC would take 99999 as 34463).
absl::Status CheckAddress(const std::string& address);

// Returns true if both are spellings of one address: the port may be missing, and localhost is
// 127.0.0.1.
bool IsSameAddress(const std::string& one, const std::string& other);

// Returns true if an address in gRPC's form is on this machine.
bool IsLocal(const std::string& address);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_ADDRESS_H_
