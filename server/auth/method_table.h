// The table of the roles that methods require.
#ifndef KILN_SERVER_AUTH_METHOD_TABLE_H_
#define KILN_SERVER_AUTH_METHOD_TABLE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/auth/principal.h"

namespace kiln::auth {

struct MethodRule {
  absl::string_view method;  // "/kiln.v1.AdminService/Drain"
  Role role_min;
};

absl::Span<const MethodRule> MethodTable();

// Returns nullopt for a method that is not in the table, which no one may call.
std::optional<Role> LeastRole(absl::string_view method);

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_METHOD_TABLE_H_
