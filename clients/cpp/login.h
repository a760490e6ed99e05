// Where a daemon is, and what tells it who calls: from arguments, the environment and a file.
#ifndef KILN_CLIENTS_CPP_LOGIN_H_
#define KILN_CLIENTS_CPP_LOGIN_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "clients/cpp/address.h"

namespace kiln::client {

// Empty: not said. The last three are paths of PEM files.
struct Login {
  std::string address = {};
  std::string token = {};
  std::string ca =
      {};  // the authorities of the daemon's certificate; "system": those of this machine
  std::string certificate = {};  // the caller's own
  std::string key = {};
  bool is_found = false;  // nobody has said the address
  // What the file has for another address, as a sentence; empty if it has nothing.
  std::string elsewhere = {};
};

// Each value from `given`, else $KILN_ADDRESS, $KILN_TOKEN, $KILN_CA, $KILN_CERTIFICATE and
// $KILN_KEY, else the file $XDG_CONFIG_HOME/kiln/config.toml or ~/.config/kiln/config.toml, which
// has lines such as `token = "…"`; a path in it may begin with `~/`. What the file says holds for
// the address in it alone, if it has one: a token must not go to another daemon. The address is
// never empty (FindAddress). Addresses are compared by IsSameAddress. INVALID_ARGUMENT: the address
// is none (CheckAddress), the file is there and cannot be read or has more than 64 KiB, a line of
// it is malformed, a token would go unencrypted over a network, or a certificate and its key are
// not both given.
absl::StatusOr<Login> FindLogin(const Login& given, const Surroundings& surroundings);

// With TLS if the login has a `ca`; every call carries the token. INVALID_ARGUMENT: a file cannot
// be read, or the `ca` has no certificate. PERMISSION_DENIED: see RequireTrusted; not for an
// address that somebody has said if there is no token.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const Login& login,
                                                           const grpc::ChannelArguments& arguments,
                                                           const Surroundings& surroundings);

// A failed call's status; if the daemon did not know the caller, or nobody answered, then with
// `elsewhere` of the login.
absl::Status WithElsewhere(const absl::Status& status, const std::string& elsewhere);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_LOGIN_H_
