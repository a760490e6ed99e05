// Checks whether another account could have created a Unix socket.
#ifndef KILN_CLIENTS_CPP_SOCKET_TRUST_H_
#define KILN_CLIENTS_CPP_SOCKET_TRUST_H_

#include <string>

#include "absl/status/status.h"

namespace kiln::client {

// Returns why accounts other than this one, root, and those that they trust can replace `path`;
// empty if they cannot.
//
// Trust begins with this account and root. In a folder that only trusted accounts can write to,
// every entry is trusted, and so is its owner: /run/kiln, which root gave to the account of a
// service. In a folder that others can write to, an entry must belong to a trusted account, and the
// folder must be sticky, as /tmp is, or others could rename the entry. The socket itself must not
// be in such a folder: whenever the daemon stops, others can create a socket of that name.
std::string WhyDistrusted(const std::string& path, unsigned user_id);

// Returns PERMISSION_DENIED, UNTRUSTED_SOCKET, if another account may have created the socket at an
// address in gRPC's form; a token sent to it would reach that account. Other addresses are trusted.
absl::Status RequireTrusted(const std::string& address, unsigned user_id);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_SOCKET_TRUST_H_
