// Who calls, and what he may do.
#ifndef KILN_SERVER_AUTH_PRINCIPAL_H_
#define KILN_SERVER_AUTH_PRINCIPAL_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln::auth {

// Each may do what those before it may. A viewer sees lists of everything and changes nothing.
enum class Role { kViewer, kUser, kAdmin };

inline constexpr absl::string_view kRoleNames[] = {"viewer", "user", "admin"};

inline absl::string_view Name(Role role) { return kRoleNames[static_cast<int>(role)]; }
inline std::optional<Role> ParseRole(absl::string_view name) {
  for (const Role role : {Role::kViewer, Role::kUser, Role::kAdmin})
    if (Name(role) == name) return role;
  return std::nullopt;
}

struct Principal {
  std::string user;
  Role role = Role::kViewer;
  std::string how;  // "token", "certificate", "socket" or "loopback"

  // A user sees his own alone; those who watch or run the daemon see everybody's.
  bool sees_all() const { return role != Role::kUser; }
};

// Whoever calls over loopback while the daemon has no users.
inline constexpr char kLocalUser[] = "local";

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_PRINCIPAL_H_
