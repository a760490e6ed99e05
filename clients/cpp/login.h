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
  // A sentence about local sockets that may be another account's, which were not used; empty if
  // there are none.
  std::string skipped = {};
};

// Returns the path of the file with the caller's login, $XDG_CONFIG_HOME/kiln/config.toml or
// ~/.config/kiln/config.toml; empty if neither folder is known.
std::string LoginFile(const Surroundings& surroundings);
// Returns what the file says; nothing if there is no file. INVALID_ARGUMENT: see FindLogin.
absl::StatusOr<Login> ReadLoginFile(const Surroundings& surroundings);
// Returns the text of such a file. INVALID_ARGUMENT: a value has a quotation mark or a line break,
// which the file cannot hold.
absl::StatusOr<std::string> LoginFileText(const Login& login);

// Takes each value from `given`, else from $KILN_ADDRESS, $KILN_TOKEN, $KILN_CA, $KILN_CERTIFICATE
// and $KILN_KEY, else from the file $XDG_CONFIG_HOME/kiln/config.toml or
// ~/.config/kiln/config.toml, which has lines such as `token = "…"`; a path in it may begin with
// `~/`. If the file has an address, its values are used only for that address: a token must not go
// to another daemon. Addresses are compared by IsSameAddress. The resulting address is never empty
// (FindAddress). So the order is: arguments, environment, file, defaults. INVALID_ARGUMENT: the
// address is invalid (CheckAddress), the file exists but cannot be read or has more than 64 KiB,
// one of its lines is malformed, a token would be sent unencrypted over a network, or only one of a
// certificate and its key is given.
absl::StatusOr<Login> FindLogin(const Login& given, const Surroundings& surroundings);

// Opens a channel, with TLS if the login has a `ca`; every call carries the token.
// INVALID_ARGUMENT: a file cannot be read, or the `ca` has no certificate. PERMISSION_DENIED: see
// RequireTrusted, which is not applied to an address that was given if there is no token.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const Login& login,
                                                           const grpc::ChannelArguments& arguments,
                                                           const Surroundings& surroundings);

// Returns a failed call's status. If the daemon did not know the caller, or no daemon answered,
// appends the login's `elsewhere`; if none answered, also its `skipped`.
absl::Status WithElsewhere(const absl::Status& status, const Login& login);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_LOGIN_H_
