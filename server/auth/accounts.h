// The accounts of this machine.
#ifndef KILN_SERVER_AUTH_ACCOUNTS_H_
#define KILN_SERVER_AUTH_ACCOUNTS_H_

#include <optional>
#include <string>

namespace kiln::auth {

// Nothing if the number is no account's.
std::optional<std::string> AccountName(unsigned user_id);
bool HasAccount(const std::string& name);
// Whether this is the account that runs the daemon, or root: both are its admins.
bool RunsDaemon(unsigned user_id);

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_ACCOUNTS_H_
