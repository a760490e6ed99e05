// Finds the daemon's address and the caller's credentials: from arguments, the environment and a
// file.
#ifndef KILN_CLIENTS_CPP_LOGIN_H_
#define KILN_CLIENTS_CPP_LOGIN_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "clients/cpp/address.h"

namespace kiln::client {

// Empty: not given. The last three are paths of PEM files.
struct Login {
  std::string address = {};
  std::string token = {};
  std::string ca =
      {};  // the authorities of the daemon's certificate; "system": those of this machine
  std::string certificate = {};  // the caller's own
  std::string key = {};
  bool is_found = false;  // the address was not given
  // A sentence about the file's values for another address; empty if it has none.
  std::string elsewhere = {};
};

// Takes each value from `given`, else from $KILN_ADDRESS, $KILN_TOKEN, $KILN_CA, $KILN_CERTIFICATE
// and $KILN_KEY, else from the file $XDG_CONFIG_HOME/kiln/config.toml or
// ~/.config/kiln/config.toml, which has lines such as `token = "…"`; a path in it may begin with
// `~/`. If the file has an address, its values are used only for that address: a token must not go
// to another daemon. Addresses are compared by IsSameAddress. The resulting address is never empty
// (FindAddress). INVALID_ARGUMENT: the address is invalid (CheckAddress), the file exists but
// cannot be read or has more than 64 KiB, one of its lines is malformed, a token would be sent
// unencrypted over a network, or only one of a certificate and its key is given.
absl::StatusOr<Login> FindLogin(const Login& given, const Surroundings& surroundings);

// Opens a channel, with TLS if the login has a `ca`; every call carries the token.
// INVALID_ARGUMENT: a file cannot be read, or the `ca` has no certificate. PERMISSION_DENIED: see
// RequireTrusted, which is not applied to an address that was given if there is no token.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const Login& login,
                                                           const grpc::ChannelArguments& arguments,
                                                           const Surroundings& surroundings);

// Returns a failed call's status. If the daemon did not know the caller, or no daemon answered,
// appends the login's `elsewhere`.
absl::Status WithElsewhere(const absl::Status& status, const std::string& elsewhere);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_LOGIN_H_
