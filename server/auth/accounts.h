// The accounts of this machine.
#ifndef KILN_SERVER_AUTH_ACCOUNTS_H_
#define KILN_SERVER_AUTH_ACCOUNTS_H_

#include <optional>
#include <string>

namespace kiln::auth {

// Returns nullopt if there is no account with this number.
std::optional<std::string> AccountName(unsigned user_id);
bool HasAccount(const std::string& name);
// Whether this is the account that runs the daemon, or root; both are admins of the daemon.
bool RunsDaemon(unsigned user_id);

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_ACCOUNTS_H_
