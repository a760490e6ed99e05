// Whether a Unix socket can be another account's than it seems to be.
#ifndef KILN_CLIENTS_CPP_SOCKET_TRUST_H_
#define KILN_CLIENTS_CPP_SOCKET_TRUST_H_

#include <string>

#include "absl/status/status.h"

namespace kiln::client {

// Why accounts other than this one, root, and those whom they trust can replace `path`; empty: they
// cannot.
//
// Trust begins with this account and root. Whatever is in a folder in which only trusted accounts
// can write is trusted, and so is its owner: /run/kiln, which root gave to the account of a
// service. In a folder in which others can write, it has to belong to a trusted account, and the
// folder must be sticky, as /tmp is, or the others could rename it. The socket itself must not be in
// such a folder: whenever the daemon ends, others can make one of that name.
std::string WhyDistrusted(const std::string& path, unsigned user_id);

// PERMISSION_DENIED, UNTRUSTED_SOCKET, if another account may have put the socket of an address in
// gRPC's form there: a token that is sent to it is that account's. Other addresses are trusted.
absl::Status RequireTrusted(const std::string& address, unsigned user_id);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_SOCKET_TRUST_H_
