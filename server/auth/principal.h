// The identity and role of a caller.
#ifndef KILN_SERVER_AUTH_PRINCIPAL_H_
#define KILN_SERVER_AUTH_PRINCIPAL_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln::auth {

// Each role includes the permissions of those before it. A viewer can list everything and change
// nothing.
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

  // Users see only their own sessions and data; viewers and admins see everyone's.
  bool sees_all() const { return role != Role::kUser; }
};

// The name of callers over loopback while the daemon has no users.
inline constexpr char kLocalUser[] = "local";

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_PRINCIPAL_H_
